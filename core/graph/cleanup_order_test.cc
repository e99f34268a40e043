// The order in which a call puts back what it changed.
#include <ATen/Functions.h>
#include <ATen/record_function.h>
#include <c10/core/AllocatorConfig.h>

#include <optional>
#include <stdexcept>
#include <string_view>

#include "core/device/device.h"
#include "core/graph/state/process_state.h"
#include "core/graph/testing/rig.h"
#include "core/memory/allocator_config.h"

namespace slotgraph {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace): the rig's names

// What holds at one moment of a call.
struct Moment {
  bool is_capturing;
  bool expandable;        // the caller's setting, which a call switches off
  bool generator_as_was;  // before the call
  bool operator==(const Moment&) const = default;
};

struct CleanupOrder : DeviceTest {
  CleanupOrder() : state(device::generator().get_state().clone()) {}
  Moment now() const {
    return {capturing(), expandable_segments_on(),
            same_bytes(device::generator().get_state(), state)};
  }
  at::Tensor state;
};

// Notes the moment of the last copy into one tensor, which is how a buffer is put back.
class CopyWatch {
 public:
  CopyWatch(at::Tensor target, std::function<Moment()> now)
      : target_(std::move(target)), now_(std::move(now)) {
    current = this;
    handle_ = at::addThreadLocalCallback(
        at::RecordFunctionCallback([](const at::RecordFunction& function) {
          if (std::string_view(function.name()) == "aten::copy_" &&
              function.inputs()[0].toTensor().is_same(current->target_))
            current->last = current->now_();
          return std::unique_ptr<at::ObserverContext>();
        })
            .needsInputs(true)
            .scopes({at::RecordScope::FUNCTION}));
  }
  ~CopyWatch() { at::removeCallback(handle_); }
  CopyWatch(const CopyWatch&) = delete;
  CopyWatch& operator=(const CopyWatch&) = delete;

  std::optional<Moment> last;

 private:
  static inline CopyWatch* current = nullptr;
  at::Tensor target_;
  std::function<Moment()> now_;
  at::CallbackHandle handle_;
};

// Y-21. The hook after the warm-up comes first, while all is as in the capture; then generators,
// then buffers, to which quantisation state belongs; settings after all memory work, and the
// capturing flag last.
TEST_F(CleanupOrder, HookGeneratorsBuffersSettingsFlag) {
  for (const Mode mode : slot_modes()) {
    for (const int fail_at : {1, 7}) {  // in warm-up, in the first capture
      SCOPED_TRACE(fail_at);
      Rig rig([&](int call) {
        (void)at::empty({4}, at::kCUDA).uniform_();
        if (call == fail_at) throw std::runtime_error("planted");
      });
      std::optional<Moment> hook;
      rig.options.after_warm_up = [&](int) { hook = now(); };
      const CopyWatch buffer(rig.buffer, [&] { return now(); });
      // The emulated device has none: they are on for the call alone.
      set_allocator_config("expandable_segments:True");
      EXPECT_THROW(rig.capture(mode), std::runtime_error);
      const Moment after = now();
      set_allocator_config("expandable_segments:False");
      EXPECT_EQ(hook,
                (Moment{.is_capturing = true, .expandable = false, .generator_as_was = false}));
      EXPECT_EQ(buffer.last,
                (Moment{.is_capturing = true, .expandable = false, .generator_as_was = true}));
      EXPECT_EQ(after,
                (Moment{.is_capturing = false, .expandable = true, .generator_as_was = true}));
    }
  }
}

}  // namespace
}  // namespace slotgraph
