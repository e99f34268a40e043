// A sticky error lasts as long as the process, so that this file has one process, and one test.
#include "core/emulation/emulation_testing.h"

namespace slotgraph::emulation {
namespace {

TEST(StickyError, DropsTheQueueAndIsReturnedByEveryCall) {
  void* memory = nullptr;
  ASSERT_OK(cudaHostAlloc(&memory, 2 * sizeof(int), 0));
  int* const ran = static_cast<int*>(memory);
  ran[0] = ran[1] = 0;
  cudaStream_t failing = nullptr, other = nullptr;
  ASSERT_OK(cudaStreamCreateWithFlags(&failing, cudaStreamNonBlocking));
  ASSERT_OK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));

  // Dropping the queue destroys what a pending launch kept: that is host code, run without a lock.
  static std::uint64_t counted = 0;
  cudaUserObject_t object = nullptr;
  EXPECT_OK(begin_capture(other));
  EXPECT_OK(cudaMemsetAsync(ran, 1, 1, other));
  const cudaGraph_t graph = end_capture(other);
  EXPECT_OK(cudaUserObjectCreate(
      &object, nullptr, [](void*) { counted = slotgraph_emulation_count(nullptr); }, 1,
      cudaUserObjectNoDestructorSync));
  EXPECT_OK(cudaGraphRetainUserObject(graph, object, 1, cudaGraphUserObjectMove));
  const cudaGraphExec_t executable = instantiate(graph);
  EXPECT_OK(cudaGraphDestroy(graph));

  EXPECT_OK(cudaLaunchHostFunc(
      failing,
      [](void* argument) {
        static_cast<int*>(argument)[1] = 1;
        slotgraph_emulation_raise(cudaErrorIllegalAddress);
        slotgraph_emulation_raise(cudaErrorAssert);  // the first error stays
      },
      ran));
  EXPECT_OK(cudaMemsetAsync(ran, 1, 1, failing));
  EXPECT_OK(cudaMemsetAsync(ran, 1, 1, other));
  EXPECT_OK(cudaGraphLaunch(executable, other));
  EXPECT_OK(cudaGraphExecDestroy(executable));

  EXPECT_EQ(cudaStreamSynchronize(failing), cudaErrorIllegalAddress);
  EXPECT_EQ(ran[0], 0);
  EXPECT_EQ(ran[1], 1);
  EXPECT_EQ(slotgraph_emulation_usage().queued, 0u);
  EXPECT_GT(counted, 0u);
  EXPECT_EQ(cudaGetLastError(), cudaErrorIllegalAddress);
  EXPECT_EQ(cudaGetLastError(), cudaErrorIllegalAddress);
  for (const NamedCall& call : every_call()) {
    EXPECT_EQ(call.call(), cudaErrorIllegalAddress) << call.name;
  }
  std::thread([] { EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorIllegalAddress); }).join();
  const FailingCall refused("cudaFree", 1, cudaErrorAssert);
  EXPECT_EQ(cudaFree(nullptr), cudaErrorIllegalAddress);
}

}  // namespace
}  // namespace slotgraph::emulation
