#include "properties/allocator/commands.h"

#include <fmt/format.h>

#include <algorithm>
#include <ostream>
#include <utility>

namespace slotgraph::allocator {
namespace {

using rc::gen::element;
using rc::gen::inRange;

Census counted;

class Step : public Command {
 public:
  Step() : thread_(*inRange(0, kThreads)) {}

  void checkPreconditions(const Model& model) const override { RC_PRE(possible(model)); }
  void apply(Model& model) const override { perform(model, model); }
  void show(std::ostream& out) const override { out << text() << " on thread " << thread_; }

  void run(const Model& before, Real& real) const override {
    Model after = before;
    const Reply predicted = perform(before, after);
    const Reply found = perform(before, real);
    const std::string what = text();
    ++counted.commands[what.substr(0, what.find('('))];
    for (int i = 0; i < static_cast<int>(Situation::kCount); ++i)
      counted.situations[name_of(static_cast<Situation>(i))] +=
          after.situations()[i] - before.situations()[i];
    if (predicted != found)
      RC_FAIL(what + "\nmodel: " + to_string(predicted) + "\nreal:  " + to_string(found));
    const std::string different = difference(after.states(), real.states());
    if (!different.empty()) RC_FAIL(what + "\n" + different);
  }

 private:
  virtual bool possible(const Model&) const { return true; }
  virtual Reply call(const Model& before, Subject& subject) const = 0;
  virtual std::string text() const = 0;

  Reply perform(const Model& before, Subject& subject) const {
    subject.switch_to(thread_);
    return call(before, subject);
  }

  int thread_;
};

// The numbers of a command, drawn.
Stream any_stream() { return {*inRange(0, kDevices), *inRange(0, kStreams)}; }
unsigned any_number() { return *inRange(0u, 1000u); }

std::size_t any_size() {
  switch (*rc::gen::weightedElement<int>({{1, 0}, {6, 1}, {6, 2}, {4, 3}, {4, 4}, {4, 5}})) {
    case 0:
      return 0;
    case 1:
      return *inRange<std::size_t>(1, 8192);
    case 2:
      return *inRange<std::size_t>(1, kMiB + 1);
    case 3:
      return *element(kMiB - 511, kMiB, kMiB + 1, 2 * kMiB, 10 * kMiB - 512, 10 * kMiB, 20 * kMiB,
                      32 * kMiB);
    case 4:
      return *inRange(kMiB, 12 * kMiB);
    default:
      return *inRange(10 * kMiB, 48 * kMiB);
  }
}

class Allocate : public Step {
  Stream stream_ = any_stream();
  std::size_t bytes_ = any_size();
  Reply call(const Model&, Subject& subject) const override {
    return subject.allocate(stream_, bytes_);
  }
  std::string text() const override {
    return fmt::format("allocate(device {}, stream {}, {} bytes)", stream_.device, stream_.index,
                       bytes_);
  }
};

class LiveBlock : public Step {
 protected:
  bool possible(const Model& model) const override { return !model.live().empty(); }
  Address block(const Model& model) const {
    const auto live = model.live();
    return live[number_ % live.size()];
  }
  unsigned number_ = any_number();
};

class Free : public LiveBlock {
  bool possible(const Model& model) const override {
    return LiveBlock::possible(model) && model.may_free(block(model));
  }
  Reply call(const Model& before, Subject& subject) const override {
    return subject.free(block(before));
  }
  std::string text() const override { return fmt::format("free(block {})", number_); }
};

class FreeAgain : public Step {
  unsigned number_ = any_number();
  bool possible(const Model& model) const override { return !model.dead().empty(); }
  Reply call(const Model& before, Subject& subject) const override {
    const auto dead = before.dead();
    return subject.free(dead[number_ % dead.size()]);
  }
  std::string text() const override { return fmt::format("free again(block {})", number_); }
};

class RecordStream : public LiveBlock {
  Stream stream_ = any_stream();
  Reply call(const Model& before, Subject& subject) const override {
    return subject.record_stream(block(before), stream_);
  }
  std::string text() const override {
    return fmt::format("record stream(block {}, device {}, stream {})", number_, stream_.device,
                       stream_.index);
  }
};

class NamesPool : public Step {
 protected:
  std::string pool_text() const { return fmt::format("(device {}, pool {})", device_, pool_); }
  int device_ = *inRange(0, kDevices);
  int pool_ = *inRange(1, kPools + 1);
};

// A call that takes nothing but a pool. One that is refused is made now and then.
class PoolCall : public NamesPool {
 public:
  using Call = Reply (Subject::*)(int, int);
  using Sensible = bool (Model::*)(int, int) const;
  PoolCall(const char* name, Call call, Sensible sensible = nullptr)
      : name_(name), call_(call), sensible_(sensible) {}

 private:
  bool possible(const Model& model) const override {
    return !sensible_ || anyway_ || (model.*sensible_)(device_, pool_);
  }
  Reply call(const Model&, Subject& subject) const override {
    return (subject.*call_)(device_, pool_);
  }
  std::string text() const override { return name_ + pool_text(); }
  std::string name_;
  Call call_;
  Sensible sensible_;
  bool anyway_ = *inRange(0, 8) == 0;
};

class Release : public NamesPool {
  bool anyway_ = *inRange(0, 8) == 0;
  bool possible(const Model& model) const override {
    return model.may_release(device_, pool_) && (anyway_ || model.exists(device_, pool_));
  }
  Reply call(const Model&, Subject& subject) const override {
    return subject.release(device_, pool_);
  }
  std::string text() const override { return "release" + pool_text(); }
};

class BeginScope : public NamesPool {
  Filter filter_{*inRange(kAny, kThreads), *inRange(kAny, kStreams)};
  Reply call(const Model&, Subject& subject) const override {
    return subject.begin_scope(device_, pool_, filter_);
  }
  std::string text() const override {
    return fmt::format("begin scope{} for thread {}, stream {}", pool_text(), filter_.thread,
                       filter_.stream);
  }
};

class EmptyCache : public Step {
  int pool_ = *inRange(0, kPools + 1);
  bool possible(const Model& model) const override { return model.may_empty_cache(pool_); }
  Reply call(const Model&, Subject& subject) const override { return subject.empty_cache(pool_); }
  std::string text() const override { return fmt::format("empty cache(pool {})", pool_); }
};

class UseOnOom : public NamesPool {
  bool use_ = *rc::gen::weightedElement<bool>({{3, true}, {1, false}});
  bool possible(const Model& model) const override { return model.may_use_on_oom(device_, pool_); }
  Reply call(const Model&, Subject& subject) const override {
    return subject.use_on_oom(device_, pool_, use_);
  }
  std::string text() const override { return fmt::format("use on oom{}: {}", pool_text(), use_); }
};

class FailNextSegment : public Step {
  bool out_of_memory_ = *rc::gen::weightedElement<bool>({{3, true}, {1, false}});
  Reply call(const Model&, Subject& subject) const override {
    return subject.fail_next_segment(out_of_memory_);
  }
  std::string text() const override {
    return fmt::format("fail next segment({})", out_of_memory_ ? "out of memory" : "otherwise");
  }
};

class Restore : public Step {
  unsigned number_ = any_number();
  int checkpoint(const Model& model) const {
    return static_cast<int>(number_ % static_cast<unsigned>(model.checkpoints()));
  }
  bool possible(const Model& model) const override {
    return model.checkpoints() > 0 && model.may_restore(checkpoint(model));
  }
  Reply call(const Model& before, Subject& subject) const override {
    return subject.restore(checkpoint(before));
  }
  std::string text() const override { return fmt::format("restore(checkpoint {})", number_); }
};

class Mark : public Step {
  Stream stream_ = any_stream();
  Reply call(const Model&, Subject& subject) const override { return subject.mark(stream_); }
  std::string text() const override {
    return fmt::format("mark(device {}, stream {})", stream_.device, stream_.index);
  }
};

class Wait : public Step {
  unsigned number_ = any_number();
  bool possible(const Model& model) const override { return model.marks() > 0; }
  Reply call(const Model& before, Subject& subject) const override {
    return subject.wait(static_cast<int>(number_ % static_cast<unsigned>(before.marks())));
  }
  std::string text() const override { return fmt::format("wait(mark {})", number_); }
};

class Configure : public Step {
  Settings settings_{*element(Settings::kUnlimited, 21 * kMiB, 21 * kMiB, 32 * kMiB),
                     *element<std::size_t>(1, 2, 4, 8), *element(0.99, 0.3, 0.6)};
  bool possible(const Model& model) const override { return model.may_configure(settings_); }
  Reply call(const Model&, Subject& subject) const override { return subject.configure(settings_); }
  std::string text() const override {
    return fmt::format("configure(max split {} MiB, divisions {}, garbage threshold {})",
                       settings_.max_split_bytes / kMiB, settings_.divisions,
                       settings_.garbage_threshold);
  }
};

class Limit : public Step {
  int device_ = *inRange(0, kDevices);
  double fraction_ = *element(1.0, 0.9, 0.7, 0.5);
  Reply call(const Model&, Subject& subject) const override {
    return subject.limit(device_, fraction_);
  }
  std::string text() const override {
    return fmt::format("limit(device {}, {} of it)", device_, fraction_);
  }
};

using Made = std::shared_ptr<const Command>;

template <typename Kind>
Made make() {
  return std::make_shared<Kind>();
}
Made make_retain() { return std::make_shared<PoolCall>("retain", &Subject::retain); }
Made make_end_scope() {
  return std::make_shared<PoolCall>("end scope", &Subject::end_scope, &Model::open);
}
Made make_forbid_splits() {
  return std::make_shared<PoolCall>("forbid splits", &Subject::forbid_splits);
}
Made make_take_checkpoint() {
  return std::make_shared<PoolCall>("take checkpoint", &Subject::take_checkpoint, &Model::exists);
}

}  // namespace

rc::Gen<Made> command(const Model&) {
  return rc::gen::exec([] {
    return (*rc::gen::weightedElement<Made (*)()>({{30, make<Allocate>},
                                                   {18, make<Free>},
                                                   {1, make<FreeAgain>},
                                                   {8, make<RecordStream>},
                                                   {6, make<BeginScope>},
                                                   {6, make_end_scope},
                                                   {3, make_retain},
                                                   {6, make<Release>},
                                                   {4, make<EmptyCache>},
                                                   {1, make_forbid_splits},
                                                   {3, make<UseOnOom>},
                                                   {2, make<FailNextSegment>},
                                                   {5, make_take_checkpoint},
                                                   {6, make<Restore>},
                                                   {3, make<Mark>},
                                                   {3, make<Wait>},
                                                   {3, make<Configure>},
                                                   {2, make<Limit>}}))();
  });
}

const Census& census() { return counted; }

}  // namespace slotgraph::allocator
