// Failing calls, counters, the log and refused calls, for every entry point.
#include <algorithm>
#include <iterator>
#include <set>

#include "core/emulation/emulation_testing.h"
#include "core/trace/calls.h"

namespace slotgraph::emulation {
namespace {

class FaultTest : public EmulationTest {};
class LogTest : public EmulationTest {};

// The newest log entry, without its number and thread.
std::string newest_entry() {
  const std::string line = read_log().back();
  return line.substr(line.find("cuda"));
}

bool reports(const std::string& entry, const std::string& name, int result) {
  const std::string end = " = " + std::to_string(result);
  return entry.starts_with(name + "(") && entry.ends_with(end);
}

TEST(EveryCall, IsInTheTable) {
  std::set<std::string> called;
  for (const NamedCall& call : every_call()) called.insert(call.name);
  const std::set<std::string> known(trace::kCallNames,
                                    trace::kCallNames + trace::kEmulatedCallCount);
  EXPECT_EQ(called, known);
}

TEST_F(FaultTest, OnceIsHonouredByEveryCall) {
  for (const NamedCall& call : every_call()) {
    SCOPED_TRACE(call.name);
    const FailingCall failing(call.name, 1, cudaErrorAssert);
    EXPECT_EQ(call.call(), cudaErrorAssert);
    EXPECT_NE(call.call(), cudaErrorAssert);
    cudaGetLastError();
  }
}

TEST_F(FaultTest, PersistentIsHonouredByEveryCall) {
  for (const NamedCall& call : every_call()) {
    SCOPED_TRACE(call.name);
    {
      const FailingCall failing(call.name, 2, cudaErrorAssert, /*persistent=*/true);
      EXPECT_NE(call.call(), cudaErrorAssert);
      EXPECT_EQ(call.call(), cudaErrorAssert);
      EXPECT_EQ(call.call(), cudaErrorAssert);
    }
    cudaGetLastError();
    EXPECT_NE(call.call(), cudaErrorAssert);
    cudaGetLastError();
  }
}

TEST_F(FaultTest, FailedCallDoesNothingAndIsTheLastError) {
  void* pointer = this;
  const std::size_t before = slotgraph_emulation_usage().segments;
  const FailingCall failing("cudaMalloc", 2, cudaErrorMemoryAllocation);
  EXPECT_OK(cudaMalloc(&pointer, 1));
  void* failed = this;
  EXPECT_EQ(cudaMalloc(&failed, 1), cudaErrorMemoryAllocation);
  EXPECT_EQ(failed, this);
  EXPECT_EQ(slotgraph_emulation_usage().segments, before + 1);
  EXPECT_EQ(cudaGetLastError(), cudaErrorMemoryAllocation);
  EXPECT_OK(cudaGetLastError());
  EXPECT_OK(cudaFree(pointer));
}

TEST_F(FaultTest, FailedWorkDoesNotRunAndLaterWorkDoes) {
  const Stream stream;
  Journal journal;
  const FailingCall failing("cudaLaunchHostFunc", 2, cudaErrorLaunchFailure);
  EXPECT_OK(journal.append(stream, 1));
  EXPECT_EQ(journal.append(stream, 2), cudaErrorLaunchFailure);
  EXPECT_OK(journal.append(stream, 3));
  EXPECT_OK(cudaStreamSynchronize(stream));
  EXPECT_EQ(journal.values(), (std::vector<int>{1, 3}));
}

TEST_F(LogTest, EveryCallIsCountedAndLogged) {
  for (const NamedCall& call : every_call()) {
    SCOPED_TRACE(call.name);
    cudaGetLastError();
    const std::uint64_t before = slotgraph_emulation_count(call.name);
    const std::uint64_t all = slotgraph_emulation_count(nullptr);
    const cudaError_t result = call.call();
    EXPECT_EQ(slotgraph_emulation_count(call.name), before + 1);
    EXPECT_EQ(slotgraph_emulation_count(nullptr), all + 1);
    EXPECT_TRUE(reports(newest_entry(), call.name, result)) << newest_entry();
  }
  EXPECT_EQ(slotgraph_emulation_count("cudaNothing"), 0u);
}

TEST_F(LogTest, UnsupportedCallsFailAndAreLogged) {
  int refused = 0;
  for (const NamedCall& call : every_call()) {
    SCOPED_TRACE(call.name);
    const cudaError_t result = call.call();
    EXPECT_EQ(result == cudaErrorNotSupported, !call.supported);
    if (call.supported) continue;
    ++refused;
    EXPECT_TRUE(reports(newest_entry(), call.name, cudaErrorNotSupported));
    EXPECT_EQ(cudaGetLastError(), cudaErrorNotSupported);
  }
  EXPECT_EQ(refused, 12);
}

TEST_F(LogTest, UnsupportedOptionsFail) {
  const Stream stream;
  const Event event;
  cudaEvent_t created = nullptr;
  cudaUserObject_t object = nullptr;
  int value = 0;
  EXPECT_EQ(cudaEventCreateWithFlags(&created, cudaEventInterprocess | cudaEventDisableTiming),
            cudaErrorNotSupported);
  EXPECT_EQ(cudaStreamWaitEvent(stream, event, cudaEventWaitExternal), cudaErrorNotSupported);
  EXPECT_EQ(cudaDeviceGetAttribute(&value, cudaDevAttrWarpSize, 0), cudaErrorNotSupported);
  EXPECT_EQ(cudaUserObjectCreate(
                &object, nullptr, [](void*) {}, 2, cudaUserObjectNoDestructorSync),
            cudaErrorNotSupported);
  EXPECT_OK(begin_capture(stream));
  const cudaGraph_t graph = end_capture(stream);
  const cudaGraphExec_t executable = instantiate(graph);
  cudaGraphExec_t refused = nullptr;
  EXPECT_EQ(cudaGraphInstantiate(&refused, graph, cudaGraphInstantiateFlagDeviceLaunch),
            cudaErrorNotSupported);
  EXPECT_OK(begin_capture(stream));
  EXPECT_EQ(cudaGraphLaunch(executable, stream), cudaErrorNotSupported);  // a child graph
  EXPECT_OK(cudaGraphDestroy(end_capture(stream)));
  EXPECT_OK(cudaGraphExecDestroy(executable));
  EXPECT_OK(cudaGraphDestroy(graph));
}

// What it says is the call's result, and the call does not run.
TEST_F(FaultTest, AnObserverIsAskedBeforeEveryCall) {
  struct Observer {
    std::vector<std::string> seen;
    int answer = 0;
    static int ask(const char* call, void* context) {
      auto& observer = *static_cast<Observer*>(context);
      observer.seen.emplace_back(call);
      return observer.answer;
    }
  } observer;
  slotgraph_emulation_observe(Observer::ask, &observer);
  for (const NamedCall& call : every_call()) {
    SCOPED_TRACE(call.name);
    observer = {{}, cudaErrorAssert};
    EXPECT_EQ(call.call(), cudaErrorAssert);
    EXPECT_EQ(observer.seen, std::vector<std::string>{call.name});
    EXPECT_TRUE(reports(newest_entry(), call.name, cudaErrorAssert));
  }
  observer.answer = 0;
  const std::size_t before = slotgraph_emulation_usage().segments;
  void* memory = nullptr;
  observer.answer = cudaErrorMemoryAllocation;
  EXPECT_EQ(cudaMalloc(&memory, 64), cudaErrorMemoryAllocation);
  EXPECT_EQ(slotgraph_emulation_usage().segments, before);
  slotgraph_emulation_observe(nullptr, nullptr);
  observer.seen.clear();
  EXPECT_EQ(cudaGetLastError(), cudaErrorMemoryAllocation);
  EXPECT_TRUE(observer.seen.empty());
}

TEST_F(FaultTest, UsageCountsEventsAndOpenCaptures) {
  const SlotgraphEmulationUsage before = slotgraph_emulation_usage();
  cudaEvent_t event = nullptr;
  EXPECT_OK(cudaEventCreate(&event));
  cudaStream_t stream = nullptr;
  EXPECT_OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  EXPECT_OK(begin_capture(stream));
  EXPECT_EQ(slotgraph_emulation_usage().events, before.events + 1);
  EXPECT_EQ(slotgraph_emulation_usage().captures, before.captures + 1);
  EXPECT_OK(cudaGraphDestroy(end_capture(stream)));
  EXPECT_OK(cudaEventDestroy(event));
  EXPECT_OK(cudaStreamDestroy(stream));
  EXPECT_EQ(slotgraph_emulation_usage().events, before.events);
  EXPECT_EQ(slotgraph_emulation_usage().captures, before.captures);
}

TEST_F(LogTest, EntryHoldsThreadArgumentsAndResult) {
  EXPECT_EQ(cudaMalloc(nullptr, 255), cudaErrorInvalidValue);
  EXPECT_EQ(newest_entry(), "cudaMalloc(0x0, 0xff, 0x0, 0x0) = 1");
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidValue);
  EXPECT_EQ(newest_entry(), "cudaGetLastError(0x0, 0x0, 0x0, 0x0) = 1");
  const auto thread_of = [](const std::string& line) {
    const std::size_t begin = line.find(' ') + 1;
    return line.substr(begin, line.find(' ', begin) - begin);
  };
  const std::string mine = thread_of(read_log().back());
  std::thread([] { cudaPeekAtLastError(); }).join();
  EXPECT_NE(thread_of(read_log().back()), mine);
}

TEST_F(LogTest, KeepsTheNewestEntries) {
  slotgraph_emulation_set_log_limit(2);
  cudaPeekAtLastError();
  cudaPeekAtLastError();
  cudaGetLastError();
  EXPECT_EQ(read_log().size(), 2u);
  EXPECT_TRUE(newest_entry().starts_with("cudaGetLastError"));
}

}  // namespace
}  // namespace slotgraph::emulation
