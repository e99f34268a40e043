// Two devices: a call belongs to the one that is current while it captures.
#include <ATen/Functions.h>

#include "core/emulation/control.h"
#include "core/graph/testing/rig.h"
#include "core/testing/rule.h"

namespace slotgraph {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace): the rig's names

const at::Device kSecond(at::kCUDA, 1);

struct TwoDevices : DeviceTest {
  static void SetUpTestSuite() {
    ASSERT_EQ(slotgraph_emulation_set_device_count(2), 0);
    DeviceTest::SetUpTestSuite();
  }
};

// Output and gradient of a frame, on the CPU.
Tensors step(CallableSet& set, const at::Tensor& input) {
  const at::Tensor output = set.at(0).forward({{input}, {}})[0];
  return {output.detach().to(at::kCPU), gradient(output, input).to(at::kCPU)};
}

TEST_F(TwoDevices, EveryModeWorksOnTheSecondDevice) {
  Rig first;
  const Tensors expected = step(*first.capture(Mode::kEager), first.samples[0].positional[0]);
  const std::size_t before = allocated();
  const c10::cuda::CUDAStreamGuard on_second(c10::cuda::getStreamFromPool(false, 1));
  for (const Mode mode : graph_modes()) {
    Rig rig;
    const auto set = rig.capture(mode);
    const at::Tensor input = ramp(3, 0).requires_grad_(true);
    ASSERT_EQ(input.device(), kSecond);
    const Tensors found = step(*set, input);
    EXPECT_TRUE(same_bytes(found[0], expected[0]) && same_bytes(found[1], expected[1]));
    EXPECT_EQ(set->at(0).static_inputs()[0].device(), kSecond);
  }
  EXPECT_EQ(allocated(), before) << "nothing on the first device";
}

TEST_F(TwoDevices, ASampleOnAnotherDeviceIsRefused) {
  Rig rig;
  rig.samples[0].positional[0] = ramp(3, 0).to(kSecond).requires_grad_(true);
  EXPECT_EQ(rule([&] { rig.capture(); }), "C19");
}

TEST_F(TwoDevices, AFrameRefusesInputsOfAnotherDevice) {
  Rig rig;
  const auto set = rig.capture();
  const at::Tensor input = ramp(3, 0).to(kSecond);
  EXPECT_EQ(rule([&] { set->at(0).forward({{input}, {}}); }), "P05");
  EXPECT_EQ(rule([&] { set->at(0).forward(rig.samples[0]); }), "");
}

TEST_F(TwoDevices, AFrameIsRefusedWhileAnotherDeviceIsCurrent) {
  Rig rig;
  const auto set = rig.capture();
  {
    const c10::cuda::CUDAStreamGuard on_second(c10::cuda::getStreamFromPool(false, 1));
    EXPECT_EQ(rule([&] { set->at(0).forward(rig.samples[0]); }), "P05");
  }
  EXPECT_EQ(rule([&] { set->at(0).forward(rig.samples[0]); }), "");
}

// Allocations on another device than that of the capture came from its default pool, and replays
// read what others had since (https://github.com/pytorch/pytorch/issues/153025). What a frame's
// result goes through may not lie there; other work there is refused, or without effect.
TEST_F(TwoDevices, NoResultGoesThroughAnotherDevice) {
  enum class Work { kTemporary, kThroughIt, kKept };
  for (const Mode mode : slot_modes()) {
    for (const bool cached : {false, true}) {
      for (const Work work : {Work::kTemporary, Work::kThroughIt, Work::kKept}) {
        for (const int from_call : {0, 6}) {
          at::Tensor keeps_a_segment, kept;
          if (cached) keeps_a_segment = at::empty({1}, at::TensorOptions(kSecond));
          Rig rig;
          rig.set_forward([&](at::TensorList in, const NamedTensors&) -> Tensors {
            const at::Tensor y = at::matmul(in[0], rig.weight);
            if (rig.calls < from_call) return {y};
            if (work == Work::kThroughIt)
              return {y.to(kSecond).mul(2).to(at::Device(at::kCUDA, 0))};
            const at::Tensor there = at::ones({1000}, at::TensorOptions(kSecond));
            if (work == Work::kKept) kept = there;
            return {y};
          });
          const std::size_t before = allocated();
          std::unique_ptr<CallableSet> set;
          std::string error;
          try {
            set = rig.capture(mode);
          } catch (const std::exception& exception) {
            error = exception.what();
          }
          EXPECT_TRUE(work != Work::kThroughIt || error.find("captur") != std::string::npos)
              << error;
          for (int branch = 0; set && branch < 4; ++branch) {
            const at::Tensor x = ramp(Rig::rows_of(branch), branch).requires_grad_(true);
            const at::Tensor right = at::matmul(x, rig.weight);
            const at::Tensor y = set->at(branch).forward({{x}, {}})[0];
            EXPECT_TRUE(same_bytes(y, right) && same_bytes(gradient(y, x), gradient(right, x)));
          }
          set.reset();
          EXPECT_EQ(allocated(), before);
          Rig next;
          EXPECT_EQ(rule([&] { next.capture(mode); }), "");
        }
      }
    }
  }
}

}  // namespace
}  // namespace slotgraph
