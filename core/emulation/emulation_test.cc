// Seeded orders and threads of the emulation.
#include <algorithm>
#include <map>
#include <set>

#include "core/emulation/emulation_testing.h"

namespace slotgraph::emulation {
namespace {

constexpr std::uint64_t kSeeds = 1000;

using Values = std::vector<int>;

class SeedTest : public EmulationTest {};
class ThreadTest : public EmulationTest {};

// Runs a program under many seeds and counts its results.
template <typename Program>
auto outcomes(Program program, std::uint64_t seeds = kSeeds) {
  std::map<decltype(program()), int> found;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    slotgraph_emulation_set_seed(seed);
    ++found[program()];
  }
  return found;
}

// A producer fills memory in one stream, a consumer copies it in another.
int produce_and_consume(bool with_wait) {
  const Stream producer, consumer;
  const Buffer device(8);
  const Pinned<std::uint8_t> result;
  EXPECT_OK(cudaMemsetAsync(device.get(), 1, 1, producer));
  EXPECT_OK(cudaMemsetAsync(device.get(), 42, 1, producer));
  if (with_wait) order(producer, consumer);
  EXPECT_OK(cudaMemcpyAsync(result.get(), device.get(), 1, cudaMemcpyDeviceToHost, consumer));
  EXPECT_OK(cudaStreamSynchronize(consumer));
  const int value = result[0];
  EXPECT_OK(cudaDeviceSynchronize());
  return value;
}

TEST_F(SeedTest, MissingWaitShowsEveryWrongValue) {
  const auto found = outcomes([] { return produce_and_consume(false); });
  EXPECT_TRUE(found.contains(0xFF));  // poison: nothing was written yet
  EXPECT_TRUE(found.contains(1));
  EXPECT_TRUE(found.contains(42));
}

TEST_F(SeedTest, RightWaitIsRightUnderEverySeed) {
  const auto found = outcomes([] { return produce_and_consume(true); });
  EXPECT_EQ(found, (std::map<int, int>{{42, kSeeds}}));
}

// Three streams of three host functions each: 1680 orders are allowed.
Values three_streams() {
  const Stream streams[3];
  Journal journal;
  for (int i = 0; i < 9; ++i) EXPECT_OK(journal.append(streams[i % 3], i));
  EXPECT_OK(cudaDeviceSynchronize());
  return journal.values();
}

TEST_F(SeedTest, ZeroIsSubmissionOrder) {
  EXPECT_EQ(three_streams(), (Values{0, 1, 2, 3, 4, 5, 6, 7, 8}));
  const Stream stream;
  Journal journal;
  EXPECT_OK(journal.append(stream, 1));
  for (int i = 0; i < 100; ++i) EXPECT_EQ(cudaStreamQuery(stream), cudaErrorNotReady);
  EXPECT_OK(cudaStreamSynchronize(stream));
}

TEST_F(SeedTest, SameSeedIsTheSameOrder) {
  std::set<Values> orders;
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    slotgraph_emulation_set_seed(seed);
    const Values first = three_streams();
    slotgraph_emulation_set_seed(seed);
    EXPECT_EQ(three_streams(), first);
    orders.insert(first);
  }
  EXPECT_GT(orders.size(), 25u);
}

TEST_F(SeedTest, StreamOrderHoldsUnderEverySeed) {
  for (const auto& [values, times] : outcomes(three_streams)) {
    for (int stream = 0; stream < 3; ++stream) {
      Values of_stream;
      std::copy_if(values.begin(), values.end(), std::back_inserter(of_stream),
                   [&](int value) { return value % 3 == stream; });
      EXPECT_EQ(of_stream, (Values{stream, stream + 3, stream + 6}));
    }
  }
}

TEST_F(SeedTest, QueriesMakeProgress) {
  slotgraph_emulation_set_seed(7);
  const Stream stream;
  Journal journal;
  for (int i = 0; i < 9; ++i) EXPECT_OK(journal.append(stream, i));
  int polls = 0;
  while (cudaStreamQuery(stream) == cudaErrorNotReady) ASSERT_LT(++polls, 10000);
  EXPECT_EQ(journal.values().size(), 9u);
}

TEST_F(SeedTest, GraphEdgesHoldAndNothingElseOrdersItsNodes) {
  const auto found = outcomes([] {
    const Stream stream, fork;
    Journal journal;
    EXPECT_OK(begin_capture(stream));
    EXPECT_OK(journal.append(stream, 1));
    order(stream, fork);
    EXPECT_OK(journal.append(stream, 2));
    EXPECT_OK(journal.append(fork, 3));
    order(fork, stream);
    EXPECT_OK(journal.append(stream, 4));
    const cudaGraph_t graph = end_capture(stream);
    const cudaGraphExec_t executable = instantiate(graph);
    EXPECT_OK(cudaGraphLaunch(executable, stream));
    EXPECT_OK(journal.append(stream, 5));
    EXPECT_OK(cudaStreamSynchronize(stream));
    EXPECT_OK(cudaGraphExecDestroy(executable));
    EXPECT_OK(cudaGraphDestroy(graph));
    return journal.values();
  });
  EXPECT_EQ(found.size(), 2u);
  EXPECT_TRUE(found.contains(Values{1, 2, 3, 4, 5}));
  EXPECT_TRUE(found.contains(Values{1, 3, 2, 4, 5}));
}

TEST_F(SeedTest, LaunchesOfOneExecutableNeverOverlap) {
  const auto found = outcomes([] {
    const Stream first, second;
    Journal journal;
    EXPECT_OK(begin_capture(first));
    EXPECT_OK(journal.append(first, 1));
    EXPECT_OK(journal.append(first, 2));
    const cudaGraph_t graph = end_capture(first);
    const cudaGraphExec_t executable = instantiate(graph);
    EXPECT_OK(cudaGraphLaunch(executable, first));
    EXPECT_OK(cudaGraphLaunch(executable, second));
    EXPECT_OK(cudaStreamSynchronize(second));
    EXPECT_OK(cudaGraphExecDestroy(executable));
    EXPECT_OK(cudaGraphDestroy(graph));
    return journal.values();
  });
  EXPECT_EQ(found, (std::map<Values, int>{{{1, 2, 1, 2}, kSeeds}}));
}

// What the legacy stream is ordered with: the work, the waits and the destroyed streams among the
// blocking ones, and nothing of the others.
Values legacy_order(unsigned int flags) {
  const Stream free;
  Journal journal;
  {
    const Stream working(flags), waiting(flags);
    EXPECT_OK(journal.append(free, 1));
    order(free, waiting);
    EXPECT_OK(journal.append(working, 2));
  }
  EXPECT_OK(journal.append(nullptr, 3));
  const Stream later(flags);
  EXPECT_OK(journal.append(later, 4));
  EXPECT_OK(cudaDeviceSynchronize());
  return journal.values();
}

TEST_F(SeedTest, LegacyStreamIsOrderedWithBlockingStreams) {
  const auto found = outcomes([] { return legacy_order(cudaStreamDefault); });
  EXPECT_EQ(found.size(), 2u);
  EXPECT_TRUE(found.contains(Values{1, 2, 3, 4}));
  EXPECT_TRUE(found.contains(Values{2, 1, 3, 4}));
}

TEST_F(SeedTest, LegacyStreamIsNotOrderedWithNonBlockingStreams) {
  EXPECT_EQ(outcomes([] { return legacy_order(cudaStreamNonBlocking); }, 2000).size(), 24u);
}

TEST_F(SeedTest, BlockingStreamTakesOverTheWaitsOfTheLegacyStream) {
  const auto found = outcomes([] {
    const Stream free, blocking(cudaStreamDefault);
    Journal journal;
    EXPECT_OK(journal.append(free, 1));
    order(free, nullptr);
    EXPECT_OK(journal.append(blocking, 2));
    EXPECT_OK(cudaDeviceSynchronize());
    return journal.values();
  });
  EXPECT_EQ(found, (std::map<Values, int>{{{1, 2}, kSeeds}}));
}

// Every thread works in its own streams, and all of them in one shared stream.
TEST_F(ThreadTest, SubmitRecordWaitAllocateAndSynchronize) {
  slotgraph_emulation_set_seed(3);
  constexpr int kThreads = 8;
  constexpr int kRounds = 50;
  const Stream shared;
  const Pinned<std::atomic<int>> total;
  const auto increment = [](void* argument) { ++*static_cast<std::atomic<int>*>(argument); };
  const auto work = [&](int number) {
    const Stream first, second;
    const Pinned<std::uint8_t> result(kRounds);
    for (int round = 0; round < kRounds; ++round) {
      const auto value = static_cast<std::uint8_t>(number * 16 + round % 16);
      const Buffer device(1);
      EXPECT_OK(cudaMemsetAsync(device.get(), value, 1, first));
      order(first, second);
      EXPECT_OK(cudaMemcpyAsync(&result[round], device.get(), 1, cudaMemcpyDeviceToHost, second));
      order(second, shared);
      EXPECT_OK(cudaLaunchHostFunc(shared, increment, total.get()));
      if (round % 4 == 0) cudaStreamQuery(first);
      EXPECT_OK(cudaStreamSynchronize(second));
      EXPECT_EQ(result[round], value);
      EXPECT_EQ(cudaMalloc(nullptr, 1), cudaErrorInvalidValue);
      EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidValue);
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) threads.emplace_back(work, i);
  for (std::thread& thread : threads) thread.join();
  EXPECT_OK(cudaStreamSynchronize(shared));
  EXPECT_EQ(total[0], kThreads * kRounds);
}

TEST_F(ThreadTest, CaptureAndLaunchSideBySide) {
  slotgraph_emulation_set_seed(5);
  const auto work = [] {
    const Stream stream;
    Journal journal;
    EXPECT_OK(begin_capture(stream, cudaStreamCaptureModeThreadLocal));
    EXPECT_OK(journal.append(stream, 1));
    EXPECT_OK(journal.append(stream, 2));
    const cudaGraph_t graph = end_capture(stream);
    const cudaGraphExec_t executable = instantiate(graph);
    for (int i = 0; i < 10; ++i) EXPECT_OK(cudaGraphLaunch(executable, stream));
    EXPECT_OK(cudaGraphExecDestroy(executable));
    EXPECT_OK(cudaGraphDestroy(graph));
    EXPECT_OK(cudaStreamSynchronize(stream));
    Values expected;
    for (int i = 0; i < 10; ++i) expected.insert(expected.end(), {1, 2});
    EXPECT_EQ(journal.values(), expected);
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) threads.emplace_back(work);
  for (std::thread& thread : threads) thread.join();
}

// A launch queue is finite: nobody has to synchronise for old work to run.
TEST_F(ThreadTest, AFullQueueRunsItsOldestWork) {
  const Stream stream;
  const Buffer device(1);
  for (int i = 0; i < 5000; ++i) EXPECT_OK(cudaMemsetAsync(device.get(), i & 127, 1, stream));
  EXPECT_LE(slotgraph_emulation_usage().queued, 4096u);
}

}  // namespace
}  // namespace slotgraph::emulation
