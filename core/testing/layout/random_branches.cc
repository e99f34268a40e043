#include "core/testing/layout/random_branches.h"

#include <algorithm>
#include <array>
#include <utility>

#include "core/random.h"

namespace slotgraph::testing {
namespace {

using Kind = SurfaceTensor::Kind;

constexpr std::array<int, 5> kItems = {1, 2, 4, 4, 8};  // by dtype: bool, half, float, int, double
constexpr std::int64_t kMaxElements = 64;

class Dice {
 public:
  explicit Dice(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() { return split_mix64(state_); }
  int between(int low, int high) { return low + static_cast<int>(next() % (high - low + 1)); }
  bool once_in(int n) { return next() % n == 0; }
  template <typename T>
  T& of(std::vector<T>& values) {
    return values[next() % values.size()];
  }
  template <typename T>
  const T& of(const std::vector<T>& values) {
    return values[next() % values.size()];
  }

 private:
  std::uint64_t state_;
};

enum class OutputKind {
  kFresh,
  kView,  // whole other output, another form
  kOverlapping,
  kNested,
  kOfInput,
  kState,
  kNone,
  kEmpty,
};
constexpr std::array<const char*, 8> kOutputNames = {
    "output fresh",    "output view",         "output overlapping", "output nested",
    "output of input", "output module state", "output none",        "output empty"};

// What the branches of a frame have in common.
struct OutputForm {
  OutputKind kind = OutputKind::kFresh;
  int base = 0;  // an earlier output, an input or module state; negative: none
  int dtype = 0;
  bool requires_grad = false;
};
struct GradientForm {
  bool none = false;
  int dtype = 0;
};
struct Frame {
  int other_inputs = 0;
  std::vector<int> module_state;
  std::vector<OutputForm> outputs;
  std::vector<GradientForm> gradients;
};

std::int64_t end_of(const TensorSpec& tensor) {
  std::int64_t last = 0;
  for (std::size_t i = 0; i < tensor.sizes.size(); ++i) {
    if (tensor.sizes[i] == 0) return tensor.offset;
    last += (tensor.sizes[i] - 1) * tensor.strides[i];
  }
  return tensor.offset + (last + 1) * tensor.item_bytes;
}

class Generator {
 public:
  explicit Generator(std::uint64_t seed) : dice_(seed) {}
  RandomBranches generate();

 private:
  Frame draw_frame();
  OutputForm draw_output(int before, int inputs);
  BranchTensors draw_branch(const Frame& frame);
  void draw_inputs(const Frame& frame);
  TensorSpec draw_input();
  void draw_outputs(const Frame& frame);
  SurfaceTensor draw_output_tensor(const OutputForm& form);
  TensorSpec output_of_input(const OutputForm& form);
  TensorSpec output_of_output(const OutputForm& form, const TensorSpec& base);
  void draw_saved();
  SavedTensor draw_save();
  SavedTensor save_of_boundary(const TensorSpec& tensor, bool whole);
  SavedTensor save_beside(const SavedTensor& earlier);
  SavedTensor save_of_its_own();
  SavedTensor external_save();
  void break_one();
  void break_surface(BranchTensors& branch);
  void break_state(BranchTensors& branch);

  TensorSpec whole(int dtype, int storage);
  TensorSpec view(int dtype, int storage, std::int64_t low, std::int64_t high);
  TensorSpec expanded(int dtype, int storage);
  void give_form(TensorSpec& tensor, int room);
  int version_of(int storage);
  std::vector<int> arena_outputs() const;
  int new_storage() { return ++storages_; }
  void count(const char* choice) { ++result_.choices[choice]; }

  Dice dice_;
  RandomBranches result_;
  int storages_ = 0;
  std::vector<TensorSpec> leading_forms_;
  std::vector<int> samples_;  // storages of inputs so far
  BranchTensors branch_;      // the one that is being drawn
  std::map<int, int> versions_;
};

RandomBranches Generator::generate() {
  for (int i = dice_.between(1, 3); i > 0; --i) {
    leading_forms_.push_back(whole(dice_.between(1, 4), 0));
    leading_forms_.back().requires_grad = dice_.once_in(2);
    if (dice_.once_in(16)) leading_forms_.back().sizes = {0}, leading_forms_.back().strides = {1};
  }
  const int frames = dice_.between(1, 3), colours = dice_.between(1, 3);
  std::vector<Frame> all;
  for (int i = 0; i < frames; ++i) all.push_back(draw_frame());
  for (int i = dice_.between(1, 6); i > 0; --i) {
    const int frame = dice_.between(0, frames - 1);
    result_.branches.push_back(draw_branch(all[frame]));
    BranchTensors& branch = result_.branches.back();
    branch.frame = frame;
    branch.branch = static_cast<int>(result_.branches.size());
    branch.colour = 10 + (dice_.once_in(4) ? dice_.between(0, colours - 1) : frame % colours);
    branch.gradient_colour = dice_.between(1, 2);
  }
  if (dice_.once_in(16)) break_one();
  return std::move(result_);
}

Frame Generator::draw_frame() {
  Frame frame;
  frame.other_inputs = dice_.between(0, 2);
  for (int i = dice_.between(0, 2); i > 0; --i) frame.module_state.push_back(new_storage());
  for (int i = dice_.between(0, 3), before = 0; i > 0; --i, ++before)
    frame.outputs.push_back(draw_output(before, 1 + frame.other_inputs));
  for (int i = dice_.between(0, 2); i > 0; --i)
    frame.gradients.push_back({dice_.once_in(4), dice_.between(1, 4)});
  return frame;
}

OutputForm Generator::draw_output(int before, int inputs) {
  OutputForm form{static_cast<OutputKind>(dice_.between(0, 7)), 0, dice_.between(0, 4),
                  dice_.once_in(2)};
  bool of_output = form.kind == OutputKind::kView || form.kind == OutputKind::kOverlapping ||
                   form.kind == OutputKind::kNested;
  if (of_output && before == 0) form.kind = OutputKind::kFresh, of_output = false;
  const bool empty_view = form.kind == OutputKind::kEmpty && before > 0 && dice_.once_in(2);
  form.base = dice_.between(0, (of_output || empty_view ? before : inputs) - 1);
  if (form.kind == OutputKind::kEmpty && !empty_view) form.base = -1;
  return form;
}

BranchTensors Generator::draw_branch(const Frame& frame) {
  branch_ = {};
  versions_.clear();
  branch_.module_state = frame.module_state;
  draw_inputs(frame);
  draw_outputs(frame);
  draw_saved();
  for (const GradientForm& form : frame.gradients) {
    branch_.user_gradients.push_back({form.none ? Kind::kNone : Kind::kArena, {}});
    count(form.none ? "gradient none" : "gradient");
    if (form.none) continue;
    TensorSpec& gradient = branch_.user_gradients.back().tensor;
    gradient = whole(form.dtype, new_storage());
    if (dice_.once_in(10)) gradient.sizes = {0, 3}, gradient.strides = {3, 1};
  }
  return std::move(branch_);
}

void Generator::draw_inputs(const Frame& frame) {
  TensorSpec leading = dice_.of(leading_forms_);
  leading.storage = samples_.empty() || dice_.once_in(2) ? new_storage() : dice_.of(samples_);
  branch_.inputs = {leading};
  for (int i = 0; i < frame.other_inputs; ++i) branch_.inputs.push_back(draw_input());
  for (const TensorSpec& input : branch_.inputs) {
    samples_.push_back(input.storage);
    branch_.input_versions.push_back(version_of(input.storage));
  }
  if (dice_.once_in(50)) ++branch_.input_versions[0];  // another counter over the same storage
}

TensorSpec Generator::draw_input() {
  const int dtype = dice_.between(0, 4);
  const TensorSpec& base = dice_.once_in(4) ? branch_.inputs[0] : branch_.inputs.back();
  switch (dice_.between(0, 11)) {
    case 0:
      count("input equal to another");
      return base;
    case 1:
      count("input aliases another");
      return view(dtype, base.storage, base.offset, base.offset + 64);
    case 2:
      count("input on a sample of any branch");
      return whole(dtype, samples_.empty() ? base.storage : dice_.of(samples_));
    default:
      return whole(dtype, new_storage());
  }
}

void Generator::draw_outputs(const Frame& frame) {
  for (const OutputForm& form : frame.outputs) {
    count(kOutputNames[static_cast<int>(form.kind)]);
    branch_.outputs.push_back(draw_output_tensor(form));
    branch_.outputs.back().tensor.requires_grad = form.requires_grad;
    branch_.output_versions.push_back(version_of(branch_.outputs.back().tensor.storage));
  }
}

SurfaceTensor Generator::draw_output_tensor(const OutputForm& form) {
  switch (form.kind) {
    case OutputKind::kNone:
      return {Kind::kNone, {}};
    case OutputKind::kState:  // which one may differ among the branches of a frame
      if (branch_.module_state.empty()) branch_.module_state.push_back(new_storage());
      return {Kind::kModuleState, whole(form.dtype, dice_.of(branch_.module_state))};
    case OutputKind::kOfInput:
      return {Kind::kArena, output_of_input(form)};
    default:
      break;
  }
  const bool has_base = form.kind != OutputKind::kFresh && form.base >= 0 &&
                        branch_.outputs[form.base].kind == Kind::kArena;
  const TensorSpec base = has_base ? branch_.outputs[form.base].tensor : TensorSpec{};
  const int storage = has_base ? base.storage : new_storage();
  if (form.kind != OutputKind::kEmpty)
    return {Kind::kArena, has_base ? output_of_output(form, base) : whole(form.dtype, storage)};
  TensorSpec empty = view(form.dtype, storage, base.offset, end_of(base) + 64);
  empty.sizes = {0}, empty.strides = {1};
  return {Kind::kArena, empty};
}

TensorSpec Generator::output_of_input(const OutputForm& form) {
  const TensorSpec& input = branch_.inputs[form.base];
  if (dice_.once_in(2)) return view(form.dtype, input.storage, input.offset, end_of(input));
  TensorSpec output = input;
  output.dtype = form.dtype;
  output.item_bytes = kItems[form.dtype];
  output.offset -= output.offset % output.item_bytes;  // other items may not fit there
  return output;
}

TensorSpec Generator::output_of_output(const OutputForm& form, const TensorSpec& base) {
  const std::int64_t begin = base.offset, end = end_of(base), half = (end - begin) / 2;
  if (form.kind == OutputKind::kNested) return view(form.dtype, base.storage, begin + 4, end);
  if (form.kind == OutputKind::kView) return view(form.dtype, base.storage, begin, end);
  return view(form.dtype, base.storage, begin + half, end + half);
}

void Generator::draw_saved() {
  for (int i = dice_.between(0, 6); i > 0; --i) branch_.saved.push_back(draw_save());
}

SavedTensor Generator::draw_save() {
  const std::vector<int> outputs = arena_outputs();
  const int choice = dice_.between(0, 8);
  if (choice == 0) return count("save of leading"), save_of_boundary(branch_.inputs[0], true);
  if (choice == 1) return count("save of input"), save_of_boundary(dice_.of(branch_.inputs), true);
  if (choice == 2)
    return count("save of input slice"), save_of_boundary(dice_.of(branch_.inputs), false);
  if (choice <= 4 && !outputs.empty()) {
    count(choice == 3 ? "save of output" : "save of output slice");
    return save_of_boundary(branch_.outputs[dice_.of(outputs)].tensor, choice == 3);
  }
  if (choice <= 6 && !branch_.saved.empty()) return save_beside(dice_.of(branch_.saved));
  if (choice == 7 && dice_.once_in(2)) return external_save();
  return save_of_its_own();
}

SavedTensor Generator::save_of_boundary(const TensorSpec& tensor, bool whole) {
  SavedTensor save{true, tensor, version_of(tensor.storage)};
  if (!whole) {
    const int dtype = dice_.once_in(16) ? dice_.between(0, 4) : tensor.dtype;
    save.tensor = view(dtype, tensor.storage, tensor.offset, end_of(tensor));
  }
  if (dice_.once_in(6)) count("save before a write"), --save.version;
  return save;
}

SavedTensor Generator::save_beside(const SavedTensor& earlier) {
  SavedTensor save = earlier;
  const int dtype = dice_.once_in(2) ? earlier.tensor.dtype : dice_.between(0, 4);
  const std::int64_t begin = earlier.tensor.offset, end = end_of(earlier.tensor);
  const int choice = dice_.between(0, 4);
  if (choice == 0) {
    count("save of another version");
    save.version += dice_.once_in(2) ? 1 : -1;
  } else if (choice == 1) {
    count("save touches another");
    save.tensor = view(dtype, earlier.tensor.storage, end, end + 32);
  } else if (choice == 2) {
    count("save equals another");
  } else {
    count("save overlaps another");
    const std::int64_t half = (end - begin) / 2;
    save.tensor = view(dtype, earlier.tensor.storage, choice == 3 ? begin : begin + half,
                       choice == 3 ? end : end + half);
  }
  return save;
}

SavedTensor Generator::save_of_its_own() {
  const int storage = new_storage(), dtype = dice_.between(0, 4);
  SavedTensor save{true, whole(dtype, storage), version_of(storage)};
  if (dice_.once_in(4)) {
    count("save empty");
    save.tensor.sizes = {2, 0}, save.tensor.strides = {1, 1};
  } else if (dice_.once_in(4)) {
    count("save expanded");
    save.tensor = expanded(dtype, storage);
  } else {
    count("save of its own");
  }
  return save;
}

SavedTensor Generator::external_save() {
  count("save external");
  const auto& state = branch_.module_state;
  return {false, whole(dice_.between(0, 4), state.empty() ? new_storage() : dice_.of(state)), 0};
}

// A tensor with a storage of its own, which mostly begins with it.
TensorSpec Generator::whole(int dtype, int storage) {
  const std::int64_t begin = dice_.once_in(4) ? dice_.between(1, 12) * kItems[dtype] : 0;
  const int elements = dice_.between(1, kMaxElements);
  TensorSpec tensor{storage, begin, {elements}, {1}, kItems[dtype], dtype};
  if (dice_.once_in(2)) give_form(tensor, elements);
  return tensor;
}

// Inside [low, high) if an element fits there.
TensorSpec Generator::view(int dtype, int storage, std::int64_t low, std::int64_t high) {
  const int item = kItems[dtype];
  TensorSpec tensor{storage, (low + item - 1) / item * item, {}, {}, item, dtype};
  const auto room = std::clamp<std::int64_t>((high - tensor.offset) / item, 1, kMaxElements);
  const int skipped = dice_.once_in(2) ? 0 : dice_.between(0, static_cast<int>(room) - 1);
  tensor.offset += skipped * item;
  give_form(tensor, static_cast<int>(room) - skipped);
  return tensor;
}

TensorSpec Generator::expanded(int dtype, int storage) {
  TensorSpec tensor{storage, 0, {}, {}, kItems[dtype], dtype};
  const int columns = dice_.between(1, 8);
  tensor.sizes = {dice_.between(1, 8), columns};
  tensor.strides = {0, dice_.once_in(2)};
  return tensor;
}

// Sizes and strides that reach at most `room` elements far.
void Generator::give_form(TensorSpec& tensor, int room) {
  const int rows = dice_.between(1, std::min(room, 8)), columns = room / rows;
  switch (dice_.between(0, 5)) {
    case 0:
      tensor.sizes = {}, tensor.strides = {};
      return;
    case 1:
      count("transposed");
      tensor.sizes = {columns, rows}, tensor.strides = {1, columns};
      return;
    case 2:
      count("strided");
      tensor.sizes = {(room - 1) / 3 + 1}, tensor.strides = {3};
      return;
    case 3:
      count("expanded");
      tensor.sizes = {rows, columns}, tensor.strides = {0, 1};
      return;
    case 4:
      tensor.sizes = {rows, columns}, tensor.strides = {columns, 1};
      return;
    default:
      tensor.sizes = {room}, tensor.strides = {1};
  }
}

// After the forward; some storages were written in it.
int Generator::version_of(int storage) {
  const auto [entry, is_new] = versions_.emplace(storage, 1);
  if (is_new && dice_.once_in(4)) entry->second = dice_.between(2, 3);
  return entry->second;
}

std::vector<int> Generator::arena_outputs() const {
  std::vector<int> outputs;
  for (std::size_t i = 0; i < branch_.outputs.size(); ++i)
    if (branch_.outputs[i].kind == Kind::kArena) outputs.push_back(static_cast<int>(i));
  return outputs;
}

void Generator::break_one() {
  count("broken on purpose");
  BranchTensors& branch = result_.branches[dice_.between(0, std::ssize(result_.branches) - 1)];
  switch (dice_.between(0, 5)) {
    case 0:
      branch.inputs.clear(), branch.input_versions.clear();
      return;
    case 1:
      branch.branch = 1;
      return;
    case 2:
      dice_.of(result_.branches).module_state.push_back(branch.inputs[0].storage);
      return;
    case 3:
      return break_state(branch);
    default:
      return break_surface(branch);
  }
}

void Generator::break_surface(BranchTensors& branch) {
  auto& surface = dice_.once_in(3) ? branch.user_gradients : branch.outputs;
  if (surface.empty() || dice_.once_in(4)) {
    surface.push_back({Kind::kArena, whole(2, new_storage())});
    branch.output_versions.resize(branch.outputs.size(), 1);
    return;
  }
  SurfaceTensor& tensor = surface[dice_.next() % surface.size()];
  switch (dice_.between(0, 3)) {
    case 0:
      tensor.kind = tensor.kind == Kind::kNone ? Kind::kArena : Kind::kNone;
      return;
    case 1:
      tensor.kind = tensor.kind == Kind::kModuleState ? Kind::kArena : Kind::kModuleState;
      tensor.tensor.storage = new_storage();
      if (tensor.kind == Kind::kModuleState) branch.module_state.push_back(tensor.tensor.storage);
      return;
    case 2:
      tensor.tensor.requires_grad = !tensor.tensor.requires_grad;
      return;
    default:
      tensor.tensor.device = 1;
  }
}

// Saves the whole of a module-state output as if it were no module state.
void Generator::break_state(BranchTensors& branch) {
  for (std::size_t i = 0; i < branch.outputs.size(); ++i)
    if (branch.outputs[i].kind == Kind::kModuleState)
      branch.saved.push_back({true, branch.outputs[i].tensor, branch.output_versions[i]});
}

}  // namespace

RandomBranches random_branches(std::uint64_t seed) { return Generator(seed).generate(); }

}  // namespace slotgraph::testing
