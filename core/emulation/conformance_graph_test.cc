// Graphs as on the real runtime.
#include <algorithm>
#include <utility>

#include "core/emulation/conformance_testing.h"

namespace slotgraph::emulation {
namespace {

using Values = std::vector<int>;
using Nodes = std::vector<cudaGraphNode_t>;

Nodes nodes_of(cudaGraph_t graph) {
  std::size_t count = 0;
  EXPECT_OK(cudaGraphGetNodes(graph, nullptr, &count));
  Nodes nodes(count);
  EXPECT_OK(cudaGraphGetNodes(graph, nodes.data(), &count));
  EXPECT_EQ(count, nodes.size());
  return nodes;
}

std::vector<std::pair<cudaGraphNode_t, cudaGraphNode_t>> edges_of(cudaGraph_t graph) {
  std::size_t count = 0;
  EXPECT_OK(cudaGraphGetEdges(graph, nullptr, nullptr, nullptr, &count));
  Nodes from(count), to(count);
  EXPECT_OK(cudaGraphGetEdges(graph, from.data(), to.data(), nullptr, &count));
  std::vector<std::pair<cudaGraphNode_t, cudaGraphNode_t>> edges;
  for (std::size_t i = 0; i < from.size(); ++i) edges.emplace_back(from[i], to[i]);
  return edges;
}

Nodes dependencies_of(cudaGraphNode_t node) {
  std::size_t count = 0;
  EXPECT_OK(cudaGraphNodeGetDependencies(node, nullptr, nullptr, &count));
  Nodes nodes(count);
  EXPECT_OK(cudaGraphNodeGetDependencies(node, nodes.data(), nullptr, &count));
  return nodes;
}

cudaGraphNodeType type_of(cudaGraphNode_t node) {
  cudaGraphNodeType type = cudaGraphNodeTypeEmpty;
  EXPECT_OK(cudaGraphNodeGetType(node, &type));
  return type;
}

class GraphTest : public ConformanceTest {
 protected:
  // Captures a chain of host functions that write down these values.
  cudaGraph_t chain(const Values& values) {
    EXPECT_OK(begin_capture(stream_));
    for (int value : values) EXPECT_OK(journal_.append(stream_, value));
    return end_capture(stream_);
  }

  const Stream stream_, other_;
  Journal journal_;
};
class UserObjectTest : public GraphTest {};

TEST_F(GraphTest, HoldsTheCapturedNodesInAChain) {
  const Buffer device(8);
  const Pinned<char> pinned;
  EXPECT_OK(begin_capture(stream_));
  EXPECT_OK(cudaMemsetAsync(device.get(), 1, 8, stream_));
  EXPECT_OK(cudaMemcpyAsync(pinned.get(), device.get(), 1, cudaMemcpyDeviceToHost, stream_));
  EXPECT_OK(journal_.append(stream_, 1));
  const cudaGraph_t graph = end_capture(stream_);
  EXPECT_EQ(nodes_of(graph).size(), 3u);
  EXPECT_EQ(edges_of(graph).size(), 2u);
  for (const auto& [from, to] : edges_of(graph)) EXPECT_EQ(dependencies_of(to), Nodes{from});
  std::vector<cudaGraphNodeType> types;
  for (cudaGraphNode_t node : nodes_of(graph)) types.push_back(type_of(node));
  for (auto type : {cudaGraphNodeTypeMemset, cudaGraphNodeTypeMemcpy, cudaGraphNodeTypeHost})
    EXPECT_EQ(std::count(types.begin(), types.end(), type), 1);
  EXPECT_OK(cudaGraphDestroy(graph));
}

TEST_F(GraphTest, ForkAndJoinThroughEvents) {
  EXPECT_OK(begin_capture(stream_));
  EXPECT_OK(journal_.append(stream_, 1));
  order(stream_, other_);
  EXPECT_OK(journal_.append(stream_, 2));
  EXPECT_OK(journal_.append(other_, 3));
  order(other_, stream_);
  EXPECT_OK(journal_.append(stream_, 4));
  const cudaGraph_t graph = end_capture(stream_);
  std::vector<std::size_t> degrees;
  for (cudaGraphNode_t node : nodes_of(graph)) degrees.push_back(dependencies_of(node).size());
  std::sort(degrees.begin(), degrees.end());
  EXPECT_EQ(degrees, (std::vector<std::size_t>{0, 1, 1, 2}));
  EXPECT_EQ(edges_of(graph).size(), 4u);
  const cudaGraphExec_t executable = instantiate(graph);
  EXPECT_OK(cudaGraphLaunch(executable, stream_));
  EXPECT_OK(cudaStreamSynchronize(stream_));
  Values values = journal_.values();
  ASSERT_EQ(values.size(), 4u);
  EXPECT_EQ(values.front(), 1);
  EXPECT_EQ(values.back(), 4);
  EXPECT_OK(cudaGraphExecDestroy(executable));
  EXPECT_OK(cudaGraphDestroy(graph));
}

TEST_F(GraphTest, ListsFillShortAndLongArrays) {
  const cudaGraph_t graph = chain({1, 2, 3});
  const auto mark = reinterpret_cast<cudaGraphNode_t>(this);
  Nodes nodes(5, mark), to(5, mark);
  std::size_t count = 2;
  EXPECT_OK(cudaGraphGetNodes(graph, nodes.data(), &count));
  EXPECT_EQ(count, 2u);
  EXPECT_EQ(nodes[2], mark);
  count = 5;
  EXPECT_OK(cudaGraphGetNodes(graph, nodes.data(), &count));
  EXPECT_EQ(count, 3u);
  EXPECT_EQ(nodes[4], nullptr);
  count = 1;
  EXPECT_OK(cudaGraphGetEdges(graph, nodes.data(), to.data(), nullptr, &count));
  EXPECT_EQ(count, 1u);
  EXPECT_EQ(to[1], mark);
  EXPECT_OK(cudaGraphDestroy(graph));
}

TEST_F(GraphTest, LaunchesAgainAndAgainInStreamOrder) {
  const cudaGraph_t graph = chain({1, 2});
  const cudaGraphExec_t executable = instantiate(graph);
  EXPECT_OK(cudaGraphDestroy(graph));  // the executable does not need it
  EXPECT_OK(journal_.append(stream_, 0));
  EXPECT_OK(cudaGraphLaunch(executable, stream_));
  EXPECT_OK(journal_.append(stream_, 3));
  EXPECT_OK(cudaGraphLaunch(executable, stream_));
  EXPECT_OK(cudaStreamSynchronize(stream_));
  EXPECT_EQ(journal_.values(), (Values{0, 1, 2, 3, 1, 2}));
  EXPECT_OK(cudaGraphExecDestroy(executable));
}

TEST_F(GraphTest, LaunchesOfOneExecutableDoNotOverlap) {
  const cudaGraph_t graph = chain({1, 2});
  const cudaGraphExec_t executable = instantiate(graph);
  EXPECT_OK(cudaGraphLaunch(executable, stream_));
  EXPECT_OK(cudaGraphLaunch(executable, other_));
  EXPECT_OK(cudaStreamSynchronize(other_));
  EXPECT_EQ(journal_.values(), (Values{1, 2, 1, 2}));
  EXPECT_OK(cudaGraphExecDestroy(executable));
  EXPECT_OK(cudaGraphDestroy(graph));
}

TEST_F(GraphTest, EmptyGraphLaunches) {
  const cudaGraph_t graph = chain({});
  EXPECT_TRUE(nodes_of(graph).empty());
  const cudaGraphExec_t executable = instantiate(graph);
  EXPECT_OK(cudaGraphLaunch(executable, stream_));
  EXPECT_OK(cudaStreamSynchronize(stream_));
  EXPECT_OK(cudaGraphExecDestroy(executable));
  EXPECT_OK(cudaGraphDestroy(graph));
}

TEST_F(GraphTest, MemoryIsReadAtEachLaunch) {
  const Buffer device(8);
  const Pinned<std::uint8_t> pinned(2);
  std::uint8_t pageable = 1;
  EXPECT_OK(begin_capture(stream_));
  EXPECT_OK(cudaMemcpyAsync(device.get(), &pinned[0], 1, cudaMemcpyHostToDevice, stream_));
  EXPECT_OK(cudaMemcpyAsync(device.get() + 1, &pageable, 1, cudaMemcpyHostToDevice, stream_));
  const cudaGraph_t graph = end_capture(stream_);
  const cudaGraphExec_t executable = instantiate(graph);
  for (std::uint8_t value : {5, 6}) {
    pinned[0] = value;
    pageable = value;
    std::uint8_t found[2] = {};
    EXPECT_OK(cudaGraphLaunch(executable, stream_));
    EXPECT_OK(cudaStreamSynchronize(stream_));
    EXPECT_OK(cudaMemcpy(found, device.get(), 2, cudaMemcpyDeviceToHost));
    EXPECT_EQ(found[0], value);
    EXPECT_EQ(found[1], value);
  }
  EXPECT_OK(cudaGraphExecDestroy(executable));
  EXPECT_OK(cudaGraphDestroy(graph));
}

TEST_F(GraphTest, DestroyedWhileALaunchIsPending) {
  const cudaGraph_t graph = chain({1, 2});
  const cudaGraphExec_t executable = instantiate(graph);
  Gate gate;
  gate.close(stream_);
  EXPECT_OK(cudaGraphLaunch(executable, stream_));
  EXPECT_OK(cudaGraphExecDestroy(executable));
  EXPECT_OK(cudaGraphDestroy(graph));
  EXPECT_TRUE(journal_.values().empty());
  gate.open();
  EXPECT_OK(cudaStreamSynchronize(stream_));
  EXPECT_EQ(journal_.values(), (Values{1, 2}));
}

TEST_F(GraphTest, WrongArguments) {
  cudaGraphExec_t executable = nullptr;
  EXPECT_EQ(cudaGraphInstantiate(&executable, nullptr, 0), cudaErrorInvalidValue);
  EXPECT_EQ(cudaGraphLaunch(nullptr, stream_), cudaErrorInvalidValue);
  EXPECT_EQ(cudaGraphDestroy(nullptr), cudaErrorInvalidValue);
  EXPECT_EQ(cudaGraphExecDestroy(nullptr), cudaErrorInvalidValue);
}

// The destructor runs at some time after the last reference is gone, perhaps in another thread.
class Witness {
 public:
  cudaUserObject_t create() {
    cudaUserObject_t object = nullptr;
    EXPECT_OK(cudaUserObjectCreate(
        &object, destroyed_.get(),
        [](void* argument) {
          auto* const destroyed = static_cast<std::atomic<int>*>(argument);
          destroyed->store(1);
          destroyed->notify_all();
        },
        1, cudaUserObjectNoDestructorSync));
    return object;
  }
  bool destroyed() const { return destroyed_->load(); }
  void await() const { destroyed_->wait(0); }

 private:
  Pinned<std::atomic<int>> destroyed_;
};

TEST_F(UserObjectTest, ReleaseOfTheOnlyReferenceDestroys) {
  Witness witness;
  const cudaUserObject_t object = witness.create();
  EXPECT_FALSE(witness.destroyed());
  EXPECT_OK(cudaUserObjectRelease(object, 1));
  witness.await();
}

TEST_F(UserObjectTest, LivesAsLongAsTheGraph) {
  Witness witness;
  const cudaUserObject_t object = witness.create();
  const cudaGraph_t graph = chain({1});
  EXPECT_OK(cudaGraphRetainUserObject(graph, object, 1, 0));
  EXPECT_OK(cudaUserObjectRelease(object, 1));
  EXPECT_FALSE(witness.destroyed());
  EXPECT_OK(cudaGraphDestroy(graph));
  witness.await();
}

TEST_F(UserObjectTest, MovedIntoACapturingGraphLivesAsLongAsItsLaunches) {
  Witness witness;
  cudaStreamCaptureStatus status;
  cudaGraph_t graph = nullptr;
  EXPECT_OK(begin_capture(stream_));
  EXPECT_OK(journal_.append(stream_, 1));
  EXPECT_OK(cudaStreamGetCaptureInfo(stream_, &status, nullptr, &graph, nullptr, nullptr, nullptr));
  EXPECT_OK(cudaGraphRetainUserObject(graph, witness.create(), 1, cudaGraphUserObjectMove));
  graph = end_capture(stream_);
  const cudaGraphExec_t executable = instantiate(graph);
  EXPECT_OK(cudaGraphDestroy(graph));
  EXPECT_FALSE(witness.destroyed());
  Gate gate;
  gate.close(stream_);
  EXPECT_OK(cudaGraphLaunch(executable, stream_));
  EXPECT_OK(cudaGraphExecDestroy(executable));
  EXPECT_FALSE(witness.destroyed());
  gate.open();
  EXPECT_OK(cudaStreamSynchronize(stream_));
  witness.await();
  EXPECT_EQ(journal_.values(), Values{1});
}

TEST_F(UserObjectTest, NeedsADestructor) {
  cudaUserObject_t object = nullptr;
  EXPECT_EQ(cudaUserObjectCreate(&object, this, nullptr, 1, cudaUserObjectNoDestructorSync),
            cudaErrorInvalidValue);
}

}  // namespace
}  // namespace slotgraph::emulation
