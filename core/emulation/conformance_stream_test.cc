// Streams, events and host functions as on the real runtime.
#include "core/emulation/conformance_testing.h"

namespace slotgraph::emulation {
namespace {

using Values = std::vector<int>;

class StreamTest : public ConformanceTest {
 protected:
  Journal journal_;
};
class EventTest : public StreamTest {};
class HostFunctionTest : public StreamTest {};

TEST_F(StreamTest, RunsItsWorkInOrder) {
  const Stream stream;
  Values expected;
  for (int i = 0; i < 20; ++i) {
    EXPECT_OK(journal_.append(stream, i));
    expected.push_back(i);
  }
  EXPECT_OK(cudaStreamSynchronize(stream));
  EXPECT_EQ(journal_.values(), expected);
  EXPECT_OK(cudaStreamQuery(stream));
}

TEST_F(StreamTest, QueryTellsPendingWorkOfThisStreamOnly) {
  const Stream busy, idle;
  Gate gate;
  gate.close(busy);
  EXPECT_EQ(cudaStreamQuery(busy), cudaErrorNotReady);
  EXPECT_OK(cudaStreamQuery(idle));
  EXPECT_OK(cudaStreamQuery(nullptr));
  gate.open();
  EXPECT_OK(cudaStreamSynchronize(busy));
  EXPECT_OK(cudaStreamQuery(busy));
}

TEST_F(StreamTest, LegacyStreamIsBusyWhileABlockingStreamIs) {
  const Stream blocking(cudaStreamDefault);
  Gate gate;
  gate.close(blocking);
  EXPECT_EQ(cudaStreamQuery(nullptr), cudaErrorNotReady);
  gate.open();
  EXPECT_OK(journal_.append(blocking, 1));
  EXPECT_OK(cudaStreamSynchronize(nullptr));
  EXPECT_EQ(journal_.values(), Values{1});
}

TEST_F(StreamTest, LegacyStreamAndBlockingStreamsWaitForEachOther) {
  const Stream first(cudaStreamDefault), second(cudaStreamDefault);
  Gate gate;
  gate.close(first);
  EXPECT_OK(journal_.append(first, 1));
  EXPECT_OK(journal_.append(nullptr, 2));
  EXPECT_OK(journal_.append(second, 3));
  gate.open();
  EXPECT_OK(cudaStreamSynchronize(second));
  EXPECT_EQ(journal_.values(), (Values{1, 2, 3}));
}

TEST_F(StreamTest, LegacyStreamTakesOverTheWaitsOfBlockingStreams) {
  const Stream free, blocking(cudaStreamDefault);
  Gate gate;
  gate.close(free);
  EXPECT_OK(journal_.append(free, 1));
  order(free, blocking);
  EXPECT_OK(journal_.append(nullptr, 2));
  gate.open();
  EXPECT_OK(cudaStreamSynchronize(nullptr));
  EXPECT_EQ(journal_.values(), (Values{1, 2}));
}

TEST_F(StreamTest, DestroyedStreamFinishesItsWorkBeforeTheLegacyStreamGoesOn) {
  cudaStream_t stream = nullptr;
  ASSERT_OK(cudaStreamCreate(&stream));
  Gate gate;
  gate.close(stream);
  EXPECT_OK(journal_.append(stream, 1));
  EXPECT_OK(cudaStreamDestroy(stream));
  EXPECT_OK(journal_.append(nullptr, 2));
  gate.open();
  EXPECT_OK(cudaStreamSynchronize(nullptr));
  EXPECT_EQ(journal_.values(), (Values{1, 2}));
}

TEST_F(StreamTest, DeviceSynchronizeWaitsForEveryStream) {
  const Stream first, second(cudaStreamDefault);
  EXPECT_OK(journal_.append(first, 1));
  EXPECT_OK(journal_.append(second, 2));
  EXPECT_OK(journal_.append(nullptr, 3));
  EXPECT_OK(cudaDeviceSynchronize());
  EXPECT_EQ(journal_.values().size(), 3u);
}

TEST_F(StreamTest, ThreeWaysToCreateAndWrongArguments) {
  cudaStream_t stream = nullptr;
  EXPECT_OK(cudaStreamCreate(&stream));
  EXPECT_OK(cudaStreamDestroy(stream));
  EXPECT_OK(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, -1));
  EXPECT_OK(cudaStreamDestroy(stream));
  EXPECT_EQ(cudaStreamCreate(nullptr), cudaErrorInvalidValue);
  EXPECT_EQ(cudaStreamCreateWithFlags(&stream, 8), cudaErrorInvalidValue);
  EXPECT_EQ(cudaStreamDestroy(nullptr), cudaErrorInvalidResourceHandle);
}

TEST_F(EventTest, NeverRecordedIsDone) {
  const Stream stream;
  const Event event;
  EXPECT_OK(cudaEventQuery(event));
  EXPECT_OK(cudaEventSynchronize(event));
  EXPECT_OK(cudaStreamWaitEvent(stream, event, 0));
  EXPECT_OK(cudaStreamSynchronize(stream));  // would hang if it waited
}

TEST_F(EventTest, MarksAPointOfItsStream) {
  const Stream stream, other;
  const Event event;
  Gate gate;
  EXPECT_OK(journal_.append(stream, 1));
  EXPECT_OK(cudaEventRecord(event, stream));
  gate.close(stream);
  EXPECT_OK(journal_.append(stream, 2));
  EXPECT_OK(cudaEventSynchronize(event));
  EXPECT_OK(cudaEventQuery(event));
  EXPECT_EQ(journal_.values(), Values{1});
  EXPECT_EQ(cudaStreamQuery(stream), cudaErrorNotReady);
  gate.open();
}

TEST_F(EventTest, OrdersTwoStreams) {
  const Stream first, second;
  Gate gate;
  gate.close(first);
  EXPECT_OK(journal_.append(first, 1));
  order(first, second);  // destroys its event: the wait stays
  EXPECT_OK(journal_.append(second, 2));
  EXPECT_EQ(cudaStreamQuery(second), cudaErrorNotReady);
  gate.open();
  EXPECT_OK(cudaStreamSynchronize(second));
  EXPECT_EQ(journal_.values(), (Values{1, 2}));
}

TEST_F(EventTest, AWaitWithoutLaterWorkHoldsTheStreamToo) {
  const Stream first, second;
  Gate gate;
  gate.close(first);
  order(first, second);
  EXPECT_EQ(cudaStreamQuery(second), cudaErrorNotReady);
  gate.open();
  EXPECT_OK(cudaStreamSynchronize(second));
  EXPECT_OK(cudaStreamQuery(second));
}

TEST_F(EventTest, AWaitMeansTheRecordBeforeIt) {
  const Stream stream, other, waiting;
  const Event event;
  Gate gate;
  EXPECT_OK(cudaEventRecord(event, stream));
  EXPECT_OK(cudaStreamWaitEvent(waiting, event, 0));
  gate.close(other);
  EXPECT_OK(cudaEventRecord(event, other));
  EXPECT_OK(cudaStreamSynchronize(waiting));  // would hang if it waited for the second record
  EXPECT_EQ(cudaEventQuery(event), cudaErrorNotReady);
  gate.open();
  EXPECT_OK(cudaEventSynchronize(event));
}

TEST_F(EventTest, ElapsedTimeRunsForward) {
  const Stream stream;
  const Event start, end;
  float forward = -1, nothing = -1;
  EXPECT_OK(cudaEventRecord(start, stream));
  EXPECT_OK(journal_.append(stream, 1));
  EXPECT_OK(cudaEventRecord(end, stream));
  EXPECT_OK(cudaEventSynchronize(end));
  EXPECT_OK(cudaEventElapsedTime(&forward, start, end));
  EXPECT_OK(cudaEventElapsedTime(&nothing, start, start));
  EXPECT_GT(forward, 0);
  EXPECT_EQ(nothing, 0);
}

TEST_F(EventTest, ElapsedTimeNeedsTwoFinishedEventsWithTiming) {
  const Stream stream;
  const Event unrecorded, untimed(cudaEventDisableTiming), event;
  float time = 0;
  Gate gate;
  EXPECT_OK(cudaEventRecord(untimed, stream));
  gate.close(stream);
  EXPECT_OK(cudaEventRecord(event, stream));
  EXPECT_EQ(cudaEventElapsedTime(&time, event, event), cudaErrorNotReady);
  EXPECT_EQ(cudaEventElapsedTime(&time, unrecorded, unrecorded), cudaErrorInvalidResourceHandle);
  gate.open();
  EXPECT_OK(cudaStreamSynchronize(stream));
  EXPECT_EQ(cudaEventElapsedTime(&time, untimed, untimed), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaEventElapsedTime(nullptr, event, event), cudaErrorInvalidValue);
}

TEST_F(EventTest, WrongArguments) {
  const Stream stream;
  cudaEvent_t event = nullptr;
  EXPECT_EQ(cudaEventCreate(nullptr), cudaErrorInvalidValue);
  EXPECT_EQ(cudaEventCreateWithFlags(&event, 128), cudaErrorInvalidValue);
  EXPECT_EQ(cudaEventDestroy(nullptr), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaEventRecord(nullptr, stream), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaEventQuery(nullptr), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaStreamWaitEvent(stream, nullptr, 0), cudaErrorInvalidResourceHandle);
}

TEST_F(HostFunctionTest, ComesBetweenCopies) {
  const Stream stream;
  const Buffer device(8);
  const Pinned<std::uint8_t> pinned(3);
  EXPECT_OK(cudaMemsetAsync(device.get(), 7, 1, stream));
  EXPECT_OK(cudaMemcpyAsync(&pinned[0], device.get(), 1, cudaMemcpyDeviceToHost, stream));
  EXPECT_OK(cudaLaunchHostFunc(
      stream,
      [](void* argument) {
        auto* const bytes = static_cast<std::uint8_t*>(argument);
        bytes[1] = static_cast<std::uint8_t>(bytes[0] + 1);
      },
      pinned.get()));
  EXPECT_OK(cudaMemcpyAsync(device.get(), &pinned[1], 1, cudaMemcpyHostToDevice, stream));
  EXPECT_OK(cudaMemcpyAsync(&pinned[2], device.get(), 1, cudaMemcpyDeviceToHost, stream));
  EXPECT_OK(cudaStreamSynchronize(stream));
  EXPECT_EQ(pinned[2], 8);
}

TEST_F(HostFunctionTest, MayNotCallTheRuntime) {
  const Stream stream;
  const Pinned<int> result;
  EXPECT_OK(cudaLaunchHostFunc(
      stream,
      [](void* argument) {
        void* pointer = nullptr;
        *static_cast<int*>(argument) = cudaMalloc(&pointer, 1);
      },
      result.get()));
  EXPECT_OK(cudaStreamSynchronize(stream));
  EXPECT_EQ(result[0], cudaErrorNotPermitted);
}

TEST_F(HostFunctionTest, NeedsAFunction) {
  const Stream stream;
  EXPECT_EQ(cudaLaunchHostFunc(stream, nullptr, nullptr), cudaErrorInvalidValue);
}

}  // namespace
}  // namespace slotgraph::emulation
