// What a GPU does and a sketch of one forgets: when copies and operands are read, what a capture
// refuses, and what happens when a kernel fails.
#include <ATen/ATen.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/device/host/test_support.h"
#include "core/emulation/control.h"

namespace slotgraph::device {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr auto kFloatDevice = [] { return at::TensorOptions(at::kCUDA).dtype(at::kFloat); };

at::Tensor on_device(std::initializer_list<float> list) {
  return at::tensor(at::ArrayRef<float>(list)).to(at::kCUDA);
}

cudaStreamCaptureStatus capture_status() {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  C10_CUDA_CHECK(cudaStreamGetCaptureInfo(c10::cuda::getCurrentCUDAStream(), &status, nullptr,
                                          nullptr, nullptr, nullptr, nullptr));
  return status;
}

struct Semantics : ::testing::Test {
  static void SetUpTestSuite() { initialise(); }
};

// On a stream that may capture.
struct CaptureSemantics : Semantics {
  CaptureSemantics() { synchronise(); }
  ~CaptureSemantics() override { synchronise(); }
  c10::cuda::CUDAStreamGuard guard{c10::cuda::getStreamFromPool()};
  ScopedPool pool;

  // The error of `work` under capture; the device must work again once the capture is abandoned.
  std::string refusal(const std::function<void()>& work, cudaStreamCaptureStatus after) {
    const auto graph = make_graph();
    graph->begin_capture(pool.id());
    const std::string error = error_of(work);
    EXPECT_EQ(capture_status(), after);
    EXPECT_TRUE(graph->captures(c10::cuda::getCurrentCUDAStream()));
    graph->abandon();
    EXPECT_EQ(capture_status(), cudaStreamCaptureStatusNone);
    EXPECT_EQ((on_device({1, 2}) + 1)[1].item<float>(), 3);
    return error;
  }
};

TEST_F(CaptureSemantics, CapturedWorkDoesNotRunBeforeReplay) {
  const at::Tensor x = on_device({1, 2}), y = on_device({5, 5});
  synchronise();
  at::Tensor z;
  const auto graph = capture(pool.id(), [&] {
    y.copy_(x);
    y.mul_(2);
    z = y + 1;
  });
  synchronise();
  EXPECT_TRUE(same_bytes(y, at::tensor({5.f, 5.f})));
  EXPECT_TRUE(at::isnan(z.to(at::kCPU)).all().item<bool>());
  graph->replay();
  EXPECT_TRUE(same_bytes(y, at::tensor({2.f, 4.f})));
  EXPECT_TRUE(same_bytes(z, at::tensor({3.f, 5.f})));
}

TEST_F(CaptureSemantics, APageableCopyIsRefusedWithTheMessageOfPyTorch) {
  const at::Tensor x = on_device({1, 2});
  const at::Tensor pageable = at::zeros({2});
  const auto message = HasSubstr(
      "Cannot copy between CPU and CUDA tensors during CUDA graph capture unless the CPU tensor is "
      "pinned. Please use tensor.pin_memory() or allocate the tensor with pin_memory=True.");
  EXPECT_THAT(refusal([&] { x.copy_(pageable); }, cudaStreamCaptureStatusActive), message);
  EXPECT_THAT(refusal([&] { x.to(at::kCPU); }, cudaStreamCaptureStatusActive), message);
}

TEST_F(CaptureSemantics, APinnedCopyIsCapturedAndReadAtReplay) {
  const at::Tensor x = on_device({0, 0});
  at::Tensor pinned = at::zeros({2}).pin_memory();
  synchronise();
  const auto graph = capture(pool.id(), [&] { x.copy_(pinned, /*non_blocking=*/true); });
  for (const float value : {3.f, 4.f}) {
    pinned.fill_(value);
    graph->replay();
    EXPECT_TRUE(same_bytes(x, at::full({2}, value)));
  }
}

TEST_F(CaptureSemantics, ReadingAnElementFailsAndLeavesTheStreamCapturing) {
  const at::Tensor x = on_device({1, 2});
  const auto message = HasSubstr("operation not permitted when stream is capturing");
  const auto spoilt = cudaStreamCaptureStatusInvalidated;
  EXPECT_THAT(refusal([&] { x[0].item(); }, spoilt), message);
  EXPECT_THAT(refusal([&] { at::nonzero(x); }, spoilt), message);
  EXPECT_THAT(refusal([&] { at::masked_select(x, x > 0); }, spoilt), message);
  EXPECT_THAT(refusal([&] { x.index({x > 0}); }, spoilt), message);
  EXPECT_THAT(refusal([&] { at::equal(x, x.clone()); }, spoilt), message);
  EXPECT_THAT(refusal([&] { synchronise(); }, spoilt), message);
}

TEST_F(CaptureSemantics, WorkAfterAFailureIsRefusedUntilTheCaptureIsAbandoned) {
  const at::Tensor x = on_device({1, 2});
  std::string later;
  refusal(
      [&] {
        error_of([&] { x[0].item(); });
        later = error_of([&] { x.add_(1); });
      },
      cudaStreamCaptureStatusInvalidated);
  EXPECT_THAT(later, HasSubstr("operation failed due to a previous error during capture"));
  EXPECT_TRUE(same_bytes(x, at::tensor({1.f, 2.f})));
}

TEST_F(CaptureSemantics, AnUnsupportedOperatorDoesNotSpoilTheCapture) {
  const at::Tensor x = on_device({1, 2});
  EXPECT_THAT(refusal([&] { at::multinomial(x, 1); }, cudaStreamCaptureStatusActive),
              HasSubstr("multinomial"));
}

TEST_F(Semantics, APageableSourceIsReadAtTheCall) {
  at::Tensor source = at::ones({4});
  const at::Tensor x = at::empty({4}, kFloatDevice());
  x.copy_(source, /*non_blocking=*/true);
  source.fill_(9);
  EXPECT_TRUE(same_bytes(x, at::ones({4})));
}

TEST_F(Semantics, APageableDestinationIsCompleteWhenTheCallReturns) {
  const at::Tensor x = on_device({1, 2}) + 1;
  const at::Tensor target = at::zeros({2});
  target.copy_(x);
  EXPECT_TRUE(at::equal(target, at::tensor({2.f, 3.f})));
  EXPECT_TRUE(at::equal((x + 1).to(at::kCPU), at::tensor({3.f, 4.f})));
}

TEST_F(Semantics, PinnedCopiesAreAsynchronous) {
  at::Tensor source = at::ones({4}).pin_memory();
  at::Tensor target = at::zeros({4}).pin_memory();
  const at::Tensor x = at::empty({4}, kFloatDevice());
  synchronise();
  x.copy_(source, /*non_blocking=*/true);
  target.copy_(x, /*non_blocking=*/true);
  source.fill_(5);
  EXPECT_TRUE(at::equal(target, at::zeros({4})));
  synchronise();
  EXPECT_TRUE(at::equal(target, at::full({4}, 5.f)));
}

TEST_F(Semantics, BlockingPinnedCopiesAreSynchronous) {
  at::Tensor source = at::ones({4}).pin_memory();
  at::Tensor target = at::zeros({4}).pin_memory();
  const at::Tensor x = at::empty({4}, kFloatDevice());
  x.copy_(source);
  source.fill_(5);
  target.copy_(x);
  EXPECT_TRUE(at::equal(target, at::ones({4})));
}

TEST_F(Semantics, ZeroDimensionalCpuOperandsAreReadAtTheCall) {
  const at::Tensor x = on_device({1, 2});
  at::Tensor factor = at::scalar_tensor(2.f);
  const at::Tensor product = x * factor;
  const at::Tensor chosen = at::where(x > 1, x, factor);
  at::Tensor filled = at::empty({2}, kFloatDevice());
  filled.fill_(factor);
  factor.fill_(100);
  EXPECT_TRUE(same_bytes(product, at::tensor({2.f, 4.f})));
  EXPECT_TRUE(same_bytes(chosen, at::tensor({2.f, 2.f})));
  EXPECT_TRUE(same_bytes(filled, at::tensor({2.f, 2.f})));
}

TEST_F(Semantics, LargerCpuOperandsAreRefused) {
  const at::Tensor x = on_device({1, 2});
  const auto message = HasSubstr("Expected all tensors to be on the same device");
  EXPECT_THAT(error_of([&] { x + at::ones({2}); }), message);
  EXPECT_THAT(error_of([&] { at::dot(x, at::ones({2})); }), message);
}

TEST_F(Semantics, WorkWaitsForSynchronisation) {
  cudaEvent_t event = nullptr;
  C10_CUDA_CHECK(cudaEventCreate(&event));
  synchronise();
  const at::Tensor x = at::ones({2}, kFloatDevice());
  C10_CUDA_CHECK(cudaEventRecord(event, c10::cuda::getCurrentCUDAStream()));
  for (int i = 0; i < 100; ++i) ASSERT_EQ(cudaEventQuery(event), cudaErrorNotReady);
  for (int i = 0; i < 100; ++i)
    ASSERT_EQ(cudaStreamQuery(c10::cuda::getCurrentCUDAStream()), cudaErrorNotReady);
  (void)cudaGetLastError();
  EXPECT_GT(slotgraph_emulation_usage().queued, 0u);
  C10_CUDA_CHECK(cudaEventSynchronize(event));
  EXPECT_EQ(cudaEventQuery(event), cudaSuccess);
  C10_CUDA_CHECK(cudaEventDestroy(event));
}

TEST_F(Semantics, QueriesMakeProgressUnderAnAdversarialSeed) {
  const ScopedSimulation simulation({.order_seed = 3});
  const at::Tensor x = at::ones({2}, kFloatDevice());
  int queries = 0;
  while (cudaStreamQuery(c10::cuda::getCurrentCUDAStream()) == cudaErrorNotReady && queries < 1000)
    ++queries;
  (void)cudaGetLastError();
  EXPECT_LT(queries, 1000);
}

TEST_F(Semantics, UnsupportedOperatorsSayTheirNameAndWhatToDo) {
  const at::Tensor x = on_device({1, 2});
  EXPECT_THAT(error_of([&] { at::multinomial(x, 1); }),
              AllOf(HasSubstr("aten::multinomial"), HasSubstr("random"),
                    HasSubstr("core/device/host/kernels_random.cc")));
  EXPECT_THAT(error_of([&] { at::view_as_real(at::complex(x, x)); }),
              AllOf(HasSubstr("aten::view_as_real"), HasSubstr("returns a view"),
                    HasSubstr("core/device/host/kernels_layout.cc")));
  EXPECT_THAT(error_of([&] { at::_cudnn_rnn_flatten_weight({x}, 1, 1, 0, 1, 1, 1, false, false); }),
              AllOf(HasSubstr("aten::_cudnn_rnn_flatten_weight"), HasSubstr("no CPU kernel")));
  for (const auto& call : std::initializer_list<std::function<void()>>{
           [] { at::empty({2}, kFloatDevice().dtype(at::kHalf)); },
           [&] { x.to(at::kHalf); },
       }) {
    EXPECT_THAT(error_of(call), AllOf(HasSubstr("Half"), HasSubstr("BFloat16")));
  }
}

TEST_F(Semantics, WrongShapesFailAtTheCallAsOnTheCpu) {
  const at::Tensor x = on_device({1, 2});
  const auto added = [](const at::Tensor& a) { return error_of([&] { a + a.repeat({3}); }); };
  EXPECT_THAT(added(x), HasSubstr("must match the size of tensor"));
  EXPECT_EQ(added(x), added(x.to(at::kCPU)));
  const auto normalised = [](const at::Tensor& a) {
    return error_of([&] { at::native_layer_norm(a, {3}, {}, {}, 1e-5); });
  };
  for (int i = 0; i < 2; ++i) {  // errors are not cached as results
    EXPECT_THAT(normalised(x), HasSubstr("normalized_shape=[3]"));
    EXPECT_EQ(normalised(x), normalised(x.to(at::kCPU)));
  }
}

// Same sizes, strides and kept contents as on the CPU.
TEST_F(Semantics, ResizingKeepsContents) {
  for (const std::vector<std::int64_t>& sizes :
       {std::vector<std::int64_t>{2}, {2, 2}, {4, 5}, {0}, {3, 1, 7}}) {
    at::Tensor expected = values({6}), found = values({6}).to(at::kCUDA);
    expected.resize_(sizes);
    found.resize_(sizes);
    EXPECT_EQ(found.sizes(), expected.sizes());
    EXPECT_EQ(found.strides(), expected.strides());
    EXPECT_GE(found.storage().nbytes(), expected.nbytes());
    const std::int64_t kept = std::min<std::int64_t>(6, expected.numel());
    EXPECT_TRUE(
        same_bytes(found.flatten().slice(0, 0, kept), expected.flatten().slice(0, 0, kept)));
  }
  at::Tensor image = at::empty({1}, kFloatDevice());
  image.resize_({2, 3, 4, 5}, at::MemoryFormat::ChannelsLast);
  EXPECT_TRUE(image.is_contiguous(at::MemoryFormat::ChannelsLast));
}

TEST_F(Semantics, SetSharesStorage) {
  at::Tensor x = on_device({1, 2, 3, 4});
  at::Tensor y = at::empty({0}, kFloatDevice());
  y.set_(x);
  EXPECT_EQ(y.const_data_ptr(), x.const_data_ptr());
  y.add_(1);
  EXPECT_TRUE(same_bytes(x, at::tensor({2.f, 3.f, 4.f, 5.f})));
  y.set_(x.storage(), 1, {3}, {1});
  EXPECT_TRUE(same_bytes(y, at::tensor({3.f, 4.f, 5.f})));
  y.set_();
  EXPECT_EQ(y.numel(), 0);
  EXPECT_TRUE(y.is_cuda());
  EXPECT_THAT(error_of([&] { y.set_(at::ones({2}).storage(), 0, {2}, {1}); }),
              HasSubstr("different device"));
}

TEST_F(Semantics, GivenOutputsAreResizedAndKeepTheirIdentity) {
  const at::Tensor x = on_device({1, 2, 3}), y = on_device({4, 5, 6});
  at::Tensor out = at::empty({0}, kFloatDevice());
  const at::Tensor& result = at::add_out(out, x, y);
  EXPECT_TRUE(result.is_same(out));
  EXPECT_TRUE(same_bytes(out, at::tensor({5.f, 7.f, 9.f})));
  at::Tensor largest = at::empty({0}, kFloatDevice());
  at::Tensor places = at::empty({0}, at::TensorOptions(at::kCUDA).dtype(at::kLong));
  at::topk_out(largest, places, x, 2);
  EXPECT_TRUE(same_bytes(largest, at::tensor({3.f, 2.f})));
  EXPECT_TRUE(same_bytes(places, at::tensor({2, 1}, at::kLong)));
}

// The kernel of mse_loss resizes its output to and fro, which the CPU's caller never sees.
TEST_F(Semantics, KernelsDoNotWarn) {
  struct Counter final : c10::WarningHandler {
    void process(const c10::Warning&) override { ++count; }
    int count = 0;
  } counter;
  const c10::WarningUtils::WarningHandlerGuard guard(&counter);
  at::mse_loss(on_device({1, 2}), on_device({3, 5}));
  synchronise();
  EXPECT_EQ(counter.count, 0);
}

TEST_F(Semantics, PoisonOfBoolIsZeroOrOne) {
  for (const std::uint8_t poison : {0xFF, 0xFE}) {
    const ScopedSimulation simulation({.poison = poison});
    const at::Tensor fresh = at::empty({64}, at::TensorOptions(at::kCUDA).dtype(at::kBool));
    EXPECT_TRUE(same_bytes(fresh.view(at::kByte), at::full({64}, poison & 1, at::kByte)));
  }
}

TEST_F(Semantics, PoisonOfAGrownBoolIsZeroOrOne) {
  at::Tensor flags = at::zeros({2}, at::TensorOptions(at::kCUDA).dtype(at::kBool));
  flags.resize_({2000});
  const at::Tensor bytes = flags.view(at::kByte);
  EXPECT_TRUE(same_bytes(bytes.slice(0, 0, 2), at::zeros({2}, at::kByte)));
  EXPECT_TRUE(same_bytes(bytes.slice(0, 2), at::ones({1998}, at::kByte)));
}

TEST_F(CaptureSemantics, AScalarIsWrittenThroughAMaskWithoutAWait) {
  const at::Tensor x = on_device({1, -2, 3});
  synchronise();
  const auto graph = capture(pool.id(), [&] { x.index_put_({x < 0}, at::scalar_tensor(9.f)); });
  graph->replay();
  EXPECT_TRUE(same_bytes(x, at::tensor({1.f, 9.f, 3.f})));
}

TEST_F(CaptureSemantics, PoisonOfCapturedBoolIsZeroOrOne) {
  const at::Tensor x = on_device({1, 2});
  synchronise();
  at::Tensor flags;
  const auto graph = capture(pool.id(), [&] { flags = at::empty_like(x, at::kBool); });
  graph->replay();
  EXPECT_TRUE(same_bytes(flags.view(at::kByte), at::ones({2}, at::kByte)));
}

struct SemanticsDeathTest : Semantics {
  SemanticsDeathTest() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

// The whole process is lost, as on a GPU, so it is one of its own.
TEST_F(SemanticsDeathTest, AFailingKernelLeavesAStickyError) {
  const auto fail = [] {
    initialise();
    const at::Tensor x = on_device({1, 2, 3});
    const at::Tensor late = at::index_select(x, 0, at::full({1}, 7, x.options().dtype(at::kLong)));
    const bool unnoticed = cudaPeekAtLastError() == cudaSuccess;
    const std::string first = error_of([] { synchronise(); });
    const std::string again = error_of([&] { x.add_(1); });
    (void)cudaGetLastError();
    const bool sticky = cudaDeviceSynchronize() == cudaErrorAssert &&
                        cudaStreamSynchronize(nullptr) == cudaErrorAssert;
    const bool dropped = slotgraph_emulation_usage().queued == 0;
    const auto said = [](const std::string& message) {
      return message.find("device-side assert triggered") != std::string::npos;
    };
    std::fprintf(stderr, "%d%d%d%d%d\n", unnoticed, said(first), said(again), sticky, dropped);
    std::_Exit(0);
  };
  EXPECT_EXIT(fail(), ::testing::ExitedWithCode(0), "device-side failure: .*index.*\n.*11111");
}

}  // namespace
}  // namespace slotgraph::device
