// Stream capture as on the real runtime.
#include "core/emulation/conformance_testing.h"

namespace slotgraph::emulation {
namespace {

constexpr auto kNone = cudaStreamCaptureStatusNone;
constexpr auto kActive = cudaStreamCaptureStatusActive;
constexpr auto kInvalidated = cudaStreamCaptureStatusInvalidated;

class CaptureTest : public ConformanceTest {
 protected:
  cudaError_t work(cudaStream_t stream) { return cudaMemsetAsync(device_.get(), 1, 8, stream); }
  // `stream` captures, and was spoilt.
  void expect_spoilt(cudaStream_t stream) {
    EXPECT_EQ(capture_status(stream), kInvalidated);
    EXPECT_EQ(failing_end(stream), cudaErrorStreamCaptureInvalidated);
    EXPECT_EQ(capture_status(stream), kNone);
  }
  // `stream` captures, and still can.
  void expect_unspoilt(cudaStream_t stream) {
    EXPECT_EQ(capture_status(stream), kActive);
    EXPECT_OK(cudaGraphDestroy(end_capture(stream)));
    EXPECT_EQ(capture_status(stream), kNone);
  }

  const Buffer device_{64};
  const Stream stream_, other_;
  const Stream blocking_{cudaStreamDefault};
};

TEST_F(CaptureTest, DoesNotRunTheWork) {
  Journal journal;
  EXPECT_OK(begin_capture(stream_));
  EXPECT_OK(journal.append(stream_, 1));
  EXPECT_EQ(capture_status(stream_), kActive);
  EXPECT_EQ(capture_status(other_), kNone);
  const cudaGraph_t graph = end_capture(stream_);
  EXPECT_EQ(capture_status(stream_), kNone);
  EXPECT_OK(cudaDeviceSynchronize());
  EXPECT_TRUE(journal.values().empty());
  EXPECT_OK(cudaGraphDestroy(graph));
}

TEST_F(CaptureTest, InfoNamesTheSequenceAndItsLastNodes) {
  cudaStreamCaptureStatus status;
  unsigned long long first = 0, forked = 0, second = 0;
  cudaGraph_t graph = nullptr;
  const cudaGraphNode_t* last = nullptr;
  std::size_t count = 9;
  EXPECT_OK(begin_capture(stream_));
  EXPECT_OK(cudaStreamGetCaptureInfo(stream_, &status, &first, &graph, &last, nullptr, &count));
  EXPECT_EQ(status, kActive);
  EXPECT_NE(graph, nullptr);
  EXPECT_EQ(count, 0u);
  EXPECT_OK(work(stream_));
  order(stream_, other_);
  EXPECT_OK(cudaStreamGetCaptureInfo(other_, &status, &forked, &graph, &last, nullptr, &count));
  EXPECT_EQ(forked, first);
  ASSERT_EQ(count, 1u);
  cudaGraphNodeType type;
  EXPECT_OK(cudaGraphNodeGetType(last[0], &type));
  EXPECT_EQ(type, cudaGraphNodeTypeMemset);
  order(other_, stream_);
  expect_unspoilt(stream_);
  EXPECT_OK(begin_capture(stream_));
  EXPECT_OK(
      cudaStreamGetCaptureInfo(stream_, &status, &second, nullptr, nullptr, nullptr, nullptr));
  EXPECT_NE(second, first);
  expect_unspoilt(stream_);
  EXPECT_OK(
      cudaStreamGetCaptureInfo(stream_, &status, nullptr, nullptr, nullptr, nullptr, nullptr));
  EXPECT_EQ(status, kNone);
}

TEST_F(CaptureTest, BeginAndEndOutOfTurn) {
  EXPECT_EQ(failing_end(stream_), cudaErrorIllegalState);
  EXPECT_OK(begin_capture(stream_));
  EXPECT_EQ(begin_capture(stream_), cudaErrorIllegalState);
  expect_unspoilt(stream_);
  EXPECT_EQ(begin_capture(nullptr), cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(begin_capture(stream_, static_cast<cudaStreamCaptureMode>(7)), cudaErrorInvalidValue);
  EXPECT_EQ(cudaStreamIsCapturing(stream_, nullptr), cudaErrorInvalidValue);
}

TEST_F(CaptureTest, WorkMustBeJoined) {
  EXPECT_OK(begin_capture(stream_));
  EXPECT_OK(work(stream_));
  order(stream_, other_);
  EXPECT_EQ(capture_status(other_), kActive);
  EXPECT_OK(work(other_));
  EXPECT_EQ(failing_end(stream_), cudaErrorStreamCaptureUnjoined);
  EXPECT_EQ(capture_status(stream_), kNone);
  EXPECT_EQ(capture_status(other_), kNone);
}

TEST_F(CaptureTest, EndsInTheStreamThatBegan) {
  EXPECT_OK(begin_capture(stream_));
  EXPECT_OK(work(stream_));
  order(stream_, other_);
  EXPECT_EQ(failing_end(other_), cudaErrorStreamCaptureUnmatched);
  EXPECT_EQ(capture_status(other_), kInvalidated);
  expect_spoilt(stream_);
  EXPECT_EQ(capture_status(other_), kNone);
}

TEST_F(CaptureTest, MayNotWaitForUncapturedWork) {
  const Event event;
  EXPECT_OK(cudaEventRecord(event, other_));
  EXPECT_OK(begin_capture(stream_));
  EXPECT_EQ(cudaStreamWaitEvent(stream_, event, 0), cudaErrorStreamCaptureIsolation);
  expect_spoilt(stream_);
}

TEST_F(CaptureTest, MayWaitForAnEventThatWasNeverRecorded) {
  const Event event;
  EXPECT_OK(begin_capture(stream_));
  EXPECT_OK(cudaStreamWaitEvent(stream_, event, 0));
  expect_unspoilt(stream_);
}

TEST_F(CaptureTest, TwoCapturesMayNotMerge) {
  const Event event;
  EXPECT_OK(begin_capture(stream_));
  EXPECT_OK(begin_capture(other_));
  EXPECT_OK(cudaEventRecord(event, stream_));
  EXPECT_EQ(cudaStreamWaitEvent(other_, event, 0), cudaErrorStreamCaptureMerge);
  expect_spoilt(stream_);
  expect_spoilt(other_);
}

TEST_F(CaptureTest, WaitingForACapturingStreamSpoilsIt) {
  EXPECT_OK(begin_capture(stream_));
  EXPECT_EQ(cudaStreamSynchronize(stream_), cudaErrorStreamCaptureUnsupported);
  expect_spoilt(stream_);
  EXPECT_OK(begin_capture(stream_));
  EXPECT_EQ(cudaStreamQuery(stream_), cudaErrorStreamCaptureUnsupported);
  expect_spoilt(stream_);
  EXPECT_OK(begin_capture(stream_, cudaStreamCaptureModeRelaxed));
  EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorStreamCaptureUnsupported);
  expect_spoilt(stream_);
}

TEST_F(CaptureTest, SpoiltCaptureTakesNoMoreWork) {
  EXPECT_OK(begin_capture(stream_));
  EXPECT_EQ(cudaStreamQuery(stream_), cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(work(stream_), cudaErrorStreamCaptureInvalidated);
  EXPECT_EQ(begin_capture(stream_), cudaErrorIllegalState);
  expect_spoilt(stream_);
}

TEST_F(CaptureTest, CapturedEventHasNoStatus) {
  const Event event;
  EXPECT_OK(begin_capture(stream_));
  EXPECT_OK(cudaEventRecord(event, stream_));
  EXPECT_EQ(cudaEventQuery(event), cudaErrorCapturedEvent);
  expect_spoilt(stream_);
  EXPECT_OK(begin_capture(stream_));
  EXPECT_OK(cudaEventRecord(event, stream_));
  EXPECT_EQ(cudaEventSynchronize(event), cudaErrorCapturedEvent);
  expect_spoilt(stream_);
  EXPECT_OK(begin_capture(stream_));
  EXPECT_OK(cudaEventRecord(event, stream_));
  float time = 0;
  EXPECT_EQ(cudaEventElapsedTime(&time, event, event), cudaErrorCapturedEvent);
  expect_unspoilt(stream_);
}

TEST_F(CaptureTest, EventOfAnEndedCaptureIsUselessUntilRecordedAgain) {
  const Event event;
  EXPECT_OK(begin_capture(stream_));
  EXPECT_OK(work(stream_));
  EXPECT_OK(cudaEventRecord(event, stream_));
  expect_unspoilt(stream_);
  EXPECT_EQ(cudaEventQuery(event), cudaErrorInvalidValue);
  EXPECT_EQ(cudaEventSynchronize(event), cudaErrorInvalidValue);
  EXPECT_EQ(cudaStreamWaitEvent(other_, event, 0), cudaErrorInvalidValue);
  EXPECT_OK(begin_capture(other_));
  EXPECT_EQ(cudaStreamWaitEvent(other_, event, 0), cudaErrorInvalidValue);
  expect_spoilt(other_);
  EXPECT_OK(cudaEventRecord(event, stream_));
  EXPECT_OK(cudaEventSynchronize(event));
}

TEST_F(CaptureTest, UnsafeCallsSpoilAGlobalCapture) {
  const Event event;
  EXPECT_OK(cudaEventRecord(event, other_));
  EXPECT_OK(cudaDeviceSynchronize());
  void* pointer = nullptr;
  void* device = nullptr;
  ASSERT_OK(cudaMalloc(&device, 64));
  EXPECT_OK(begin_capture(stream_));
  EXPECT_EQ(cudaMalloc(&pointer, 64), cudaErrorStreamCaptureUnsupported);
  expect_spoilt(stream_);
  EXPECT_OK(begin_capture(stream_));
  EXPECT_EQ(cudaHostAlloc(&pointer, 64, 0), cudaErrorStreamCaptureUnsupported);
  expect_spoilt(stream_);
  EXPECT_OK(begin_capture(stream_));
  EXPECT_EQ(cudaFree(device), cudaErrorStreamCaptureUnsupported);
  expect_spoilt(stream_);
  EXPECT_OK(begin_capture(stream_));
  EXPECT_EQ(cudaEventQuery(event), cudaErrorStreamCaptureUnsupported);
  expect_spoilt(stream_);
  EXPECT_OK(begin_capture(stream_));
  EXPECT_EQ(cudaStreamSynchronize(other_), cudaErrorStreamCaptureUnsupported);
  expect_spoilt(stream_);
  EXPECT_OK(cudaFree(device));  // the refused call kept it
}

TEST_F(CaptureTest, UnsafeCallsOfARelaxedThreadAreAllowed) {
  cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  void* pointer = nullptr;
  EXPECT_OK(begin_capture(stream_));
  EXPECT_OK(cudaThreadExchangeStreamCaptureMode(&mode));
  EXPECT_EQ(mode, cudaStreamCaptureModeGlobal);
  EXPECT_OK(cudaMalloc(&pointer, 64));
  EXPECT_OK(cudaFree(pointer));
  EXPECT_OK(cudaThreadExchangeStreamCaptureMode(&mode));
  EXPECT_EQ(mode, cudaStreamCaptureModeRelaxed);
  expect_unspoilt(stream_);
}

TEST_F(CaptureTest, UnsafeCallsUnderARelaxedCaptureAreAllowed) {
  void* pointer = nullptr;
  EXPECT_OK(begin_capture(stream_, cudaStreamCaptureModeRelaxed));
  EXPECT_OK(cudaMalloc(&pointer, 64));
  expect_unspoilt(stream_);
  EXPECT_OK(cudaFree(pointer));
}

TEST_F(CaptureTest, UnsafeCallsOfOtherThreadsSpoilOnlyAGlobalCapture) {
  void* pointer = nullptr;
  EXPECT_OK(begin_capture(stream_, cudaStreamCaptureModeThreadLocal));
  std::thread([&] { EXPECT_OK(cudaMalloc(&pointer, 64)); }).join();
  expect_unspoilt(stream_);
  EXPECT_OK(cudaFree(pointer));
  EXPECT_OK(begin_capture(stream_));
  std::thread([&] {
    EXPECT_EQ(cudaMalloc(&pointer, 64), cudaErrorStreamCaptureUnsupported);
  }).join();
  expect_spoilt(stream_);
}

TEST_F(CaptureTest, GraphsMayDieInARelaxedThreadOnly) {
  const auto make = [&] {
    EXPECT_OK(begin_capture(stream_));
    EXPECT_OK(work(stream_));
    return end_capture(stream_);
  };
  cudaGraph_t graph = make();
  cudaGraphExec_t executable = instantiate(graph);
  EXPECT_OK(begin_capture(stream_));
  EXPECT_OK(cudaGraphDestroy(graph));
  EXPECT_EQ(capture_status(stream_), kActive);
  EXPECT_EQ(cudaGraphExecDestroy(executable), cudaErrorStreamCaptureUnsupported);
  expect_spoilt(stream_);
  cudaGetLastError();
  EXPECT_OK(begin_capture(stream_));
  cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  EXPECT_OK(cudaThreadExchangeStreamCaptureMode(&mode));
  EXPECT_OK(cudaGraphExecDestroy(executable));
  EXPECT_OK(cudaThreadExchangeStreamCaptureMode(&mode));
  expect_unspoilt(stream_);
}

TEST_F(CaptureTest, LegacyStreamMayNotDependOnACapture) {
  for (auto mode : {cudaStreamCaptureModeGlobal, cudaStreamCaptureModeRelaxed}) {
    EXPECT_OK(begin_capture(blocking_, mode));
    EXPECT_EQ(work(nullptr), cudaErrorStreamCaptureImplicit);
    expect_spoilt(blocking_);
  }
  char found = 0;
  EXPECT_OK(begin_capture(blocking_));
  EXPECT_EQ(cudaMemcpy(&found, device_.get(), 1, cudaMemcpyDeviceToHost),
            cudaErrorStreamCaptureImplicit);
  expect_spoilt(blocking_);
  EXPECT_OK(begin_capture(blocking_, cudaStreamCaptureModeRelaxed));
  EXPECT_EQ(cudaStreamQuery(nullptr), cudaErrorStreamCaptureImplicit);
  expect_spoilt(blocking_);
  const Event event;
  EXPECT_OK(begin_capture(stream_));
  EXPECT_OK(cudaEventRecord(event, stream_));
  EXPECT_EQ(cudaStreamWaitEvent(nullptr, event, 0), cudaErrorStreamCaptureImplicit);
  expect_spoilt(stream_);
}

TEST_F(CaptureTest, AskingWhetherTheLegacyStreamCapturesSpoilsNothing) {
  cudaStreamCaptureStatus status;
  EXPECT_OK(begin_capture(blocking_));
  EXPECT_EQ(cudaStreamIsCapturing(nullptr, &status), cudaErrorStreamCaptureImplicit);
  expect_unspoilt(blocking_);
}

TEST_F(CaptureTest, LegacyStreamIsFreeWhileANonBlockingStreamCaptures) {
  char found = 0;
  EXPECT_OK(begin_capture(stream_));
  EXPECT_OK(work(nullptr));
  EXPECT_OK(cudaMemset(device_.get(), 0, 8));
  EXPECT_OK(cudaMemcpy(&found, device_.get(), 1, cudaMemcpyDeviceToHost));
  EXPECT_EQ(capture_status(nullptr), kNone);
  expect_unspoilt(stream_);
}

TEST_F(CaptureTest, EndInAnotherThreadEndsACaptureWithoutAGraph) {
  EXPECT_OK(begin_capture(stream_));
  std::thread([&] { EXPECT_EQ(failing_end(stream_), cudaErrorStreamCaptureWrongThread); }).join();
  EXPECT_EQ(capture_status(stream_), kNone);
}

TEST_F(CaptureTest, RelaxedCaptureMayEndInAnotherThread) {
  EXPECT_OK(begin_capture(stream_, cudaStreamCaptureModeRelaxed));
  std::thread([&] { expect_unspoilt(stream_); }).join();
}

TEST_F(CaptureTest, DestroyingTheStreamEndsTheCapture) {
  cudaStream_t stream = nullptr;
  void* pointer = nullptr;
  ASSERT_OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  EXPECT_OK(begin_capture(stream));
  EXPECT_OK(work(stream));
  EXPECT_OK(cudaStreamDestroy(stream));
  EXPECT_OK(cudaMalloc(&pointer, 64));  // nobody captures
  EXPECT_OK(cudaFree(pointer));
}

}  // namespace
}  // namespace slotgraph::emulation
