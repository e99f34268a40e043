// What every plan of the planner must hold, against oracles that share no code with it: replay by
// owners' tokens, conflicts by intervals over all counts, rings and colours by closed forms.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "core/error.h"
#include "core/order/microbatch_counts.h"
#include "core/plan/colouring.h"
#include "core/plan/conflicts.h"
#include "core/plan/planner.h"
#include "core/testing/random_plans.h"

namespace slotgraph {
namespace {

// Every shape with P <= 5, V <= 4, P <= N <= P + 2, up to 2 layers a chunk, and up to 4 groups.
template <typename Visit>
int for_each_small_request(Visit visit) {
  int requests = 0;
  for (int p = 1; p <= 5; ++p)
    for (int rank = 0; rank < p; ++rank)
      for (int v = 0; v <= (p == 1 ? 0 : 4); ++v)
        for (int n = v == 0 ? 1 : p; n <= (v == 0 ? 1 : p + 2); ++n)
          for (int groups = 1; groups <= (v == 0 ? 9 : 4); ++groups) {
            const PipelineShape shape{p, rank, v, n};
            int layouts = 3;
            for (int c = 1; c < v; ++c) layouts *= 3;
            for (int layout = 0; layout < layouts; ++layout) {
              std::vector<int> layers;
              for (int c = 0, rest = layout; c < shape.chunks(); ++c, rest /= 3)
                layers.push_back(rest % 3);
              visit(PlanRequest{"", shape, layers, {4, 2}, aligned_counts(shape, groups * n)});
              ++requests;
            }
          }
  return requests;
}

// Runs steps on arenas of tokens. Whoever is forwarded writes who he is into his arenas and must
// find that at his backward; a returned gradient must be found until the next backward has ended.
class TokenMachine {
 public:
  explicit TokenMachine(const Plan& plan) : plan_(plan) {}

  // What went wrong, or nothing.
  std::string step(const Order& order) {
    ++step_;
    std::map<int, int> seen;
    std::tuple<int, int, int> last;
    int last_gradient = -1;
    for (const int entry : order) {
      const int chunk = std::abs(entry) - 1, microbatch = seen[entry]++;
      const int slot = microbatch % plan_.ring_length;
      for (int layer = 0; layer < plan_.layers_per_chunk[chunk]; ++layer) {
        const Slot& fields = plan_.slots[plan_.frame(chunk, slot, layer)];
        const std::array<int, 4> token{step_, chunk, microbatch, layer};
        if (entry > 0) {
          saved_[fields.colour] = token;
        } else if (saved_[fields.colour] != token) {
          return fmt::format("chunk {}, microbatch {}, layer {}", chunk, microbatch, layer);
        }
      }
      if (entry > 0) continue;
      const bool returns = plan_.layers_per_chunk[chunk] > 0;
      const int gradient = returns ? plan_.gradient_colours[chunk][slot] : -1;
      if (returns) gradients_[gradient] = {step_, chunk, microbatch};
      if (last_gradient >= 0 && gradients_[last_gradient] != last)
        return fmt::format("gradient before chunk {}, microbatch {}", chunk, microbatch);
      last = {step_, chunk, microbatch};
      last_gradient = gradient;
    }
    return "";
  }

 private:
  const Plan& plan_;
  int step_ = 0;
  std::map<int, std::array<int, 4>> saved_;
  std::map<int, std::tuple<int, int, int>> gradients_;
};

std::string replay(const Plan& plan) {
  if (plan.layers() == 0) return "";
  TokenMachine machine(plan);
  for (const int count : plan.covered_counts) {
    const std::string wrong = machine.step(training_order(plan.shape, count));
    if (!wrong.empty()) return fmt::format("{} of {} microbatches", wrong, count);
  }
  const std::string wrong = machine.step(plan.base_order);
  return wrong.empty() ? "" : wrong + " of the capture";
}

std::string where(const PlanRequest& request) {
  return fmt::format("P {} rank {} V {} N {} limit {} layers of chunk 0: {}",
                     request.shape.pipeline_size, request.shape.rank, request.shape.virtual_stages,
                     request.shape.microbatch_group_size, request.counts.back(),
                     request.layers_per_chunk[0]);
}

TEST(Planner, EveryStepOfEverySmallPlanFindsItsBytes) {
  const int requests = for_each_small_request([](const PlanRequest& request) {
    if (::testing::Test::HasFatalFailure()) return;
    ASSERT_EQ(replay(make_plan(request)), "") << where(request);
  });
  fmt::print("{} shapes\n", requests);
  EXPECT_GT(requests, 5000);
}

// Edges by intervals of event positions, over all counts and the capture.
using Edges = std::set<std::pair<int, int>>;
void add_edges(const Plan& plan, const Order& order, Edges& together, Edges& successive) {
  struct Life {
    int place, begin, end;
  };
  std::vector<Life> lives;
  std::map<int, int> seen;
  std::map<std::pair<int, int>, std::size_t> open;
  int last = -1;
  for (int i = 0; i < static_cast<int>(order.size()); ++i) {
    const int chunk = std::abs(order[i]) - 1, microbatch = seen[order[i]]++;
    const int place = chunk * plan.ring_length + microbatch % plan.ring_length;
    if (order[i] > 0) {
      open[{chunk, microbatch}] = lives.size();
      lives.push_back({place, i, i});
      continue;
    }
    lives[open.at({chunk, microbatch})].end = i;
    if (last >= 0) successive.emplace(std::min(last, place), std::max(last, place));
    last = place;
  }
  for (const Life& a : lives)
    for (const Life& b : lives)
      if (a.begin < b.begin && b.begin < a.end)
        together.emplace(std::min(a.place, b.place), std::max(a.place, b.place));
}

Edges edges_of(const ConflictGraph& graph) {
  Edges edges;
  for (int a = 0; a < graph.nodes(); ++a)
    for_each_bit(graph.neighbours(a), [&](int b) {
      if (a < b) edges.emplace(a, b);
    });
  return edges;
}

// The few orders that are walked give exactly the union over all counts; ring lengths W to W + 2.
TEST(Planner, ConflictsAreExactlyThoseOfAllCountsAndTheCapture) {
  int graphs = 0;
  for_each_small_request([&](PlanRequest request) {
    const bool once = std::all_of(request.layers_per_chunk.begin(), request.layers_per_chunk.end(),
                                  [](int layers) { return layers == 1; });
    if (!once || ::testing::Test::HasFatalFailure()) return;
    const int shortest = shortest_ring(request.shape, request.counts);
    for (request.ring_length = shortest; request.ring_length <= shortest + 2;
         ++request.ring_length) {
      const Plan plan = make_plan(request);
      Edges together, successive;
      for (const int count : plan.covered_counts)
        add_edges(plan, training_order(plan.shape, count), together, successive);
      add_edges(plan, plan.base_order, together, successive);
      const Liveness liveness =
          walk(covering_orders(plan.shape, plan.covered_counts, plan.ring_length, true),
               plan.chunks(), plan.ring_length, {});
      ASSERT_EQ(edges_of(liveness.together), together) << where(request);
      ASSERT_EQ(edges_of(liveness.successive), successive) << where(request);
      ++graphs;
    }
  });
  fmt::print("{} graphs\n", graphs);
}

// Long steps: what is walked for a limit of 20 groups holds what all of them make live.
TEST(Planner, ConflictsOfLongStepsAreComplete) {
  for (int p = 2; p <= 4; ++p)
    for (int v = 0; v <= 3; ++v)
      for (int n = v == 0 ? 1 : p; n <= (v == 0 ? 1 : 2 * p + 1); ++n)
        for (int rank = 0; rank < p; ++rank) {
          const PipelineShape shape{p, rank, v, n};
          PlanRequest request{
              "", shape, std::vector<int>(shape.chunks(), 1), {1}, aligned_counts(shape, 20 * n)};
          const Plan plan = make_plan(request);
          Edges together, successive;
          for (const int count : {n, 2 * n, 20 * n, plan.ring_length})
            add_edges(plan, capture_order(shape, count), together, successive);
          const Liveness liveness =
              walk(covering_orders(shape, plan.covered_counts, plan.ring_length, true),
                   plan.chunks(), plan.ring_length, {});
          ASSERT_EQ(edges_of(liveness.together), together) << where(request);
          ASSERT_EQ(edges_of(liveness.successive), successive) << where(request);
        }
}

// The ring is the most microbatches in flight on any rank, and no shorter one works there.
TEST(Planner, TheRingIsTheShortestOnAllRanks) {
  for_each_small_request([](PlanRequest request) {
    if (::testing::Test::HasFatalFailure() || request.layers_per_chunk[0] != 1) return;
    int most = 1;
    for (int rank = 0; rank < request.shape.pipeline_size; ++rank) {
      PipelineShape shape = request.shape;
      shape.rank = rank;
      for (const int count : request.counts) {
        std::map<int, int> live;
        for (const int entry : training_order(shape, count)) {
          live[std::abs(entry)] += entry > 0 ? 1 : -1;
          most = std::max(most, live[std::abs(entry)]);
        }
      }
    }
    ASSERT_EQ(shortest_ring(request.shape, request.counts), most) << where(request);
    ASSERT_EQ(make_plan(request).ring_length, most) << where(request);
    if (most == 1 || request.shape.rank != 0) return;
    request.ring_length = most - 1;
    ASSERT_THROW(make_plan(request), Error) << where(request);
  });
}

// Field by field: each follows from the variant, chunk, slot and layer.
TEST(Planner, FieldsFollowFromVariantChunkSlotAndLayer) {
  for_each_small_request([](const PlanRequest& request) {
    if (::testing::Test::HasFatalFailure()) return;
    const Plan plan = make_plan(request);
    SCOPED_TRACE(where(request));
    const int ring = plan.ring_length;
    int layers = 0;
    for (const int of_chunk : plan.layers_per_chunk) layers += of_chunk;
    ASSERT_EQ(static_cast<int>(plan.slots.size()), 2 * ring * layers);
    std::size_t index = 0;
    std::map<std::tuple<int, int, int>, std::set<int>> frames;
    std::map<int, int> groups;
    for (int v = 0; v < 2; ++v)
      for (int c = 0, first = 0; c < plan.chunks(); first += plan.layers_per_chunk[c++])
        for (int s = 0; s < ring; ++s)
          for (int l = 0; l < plan.layers_per_chunk[c]; ++l, ++index) {
            const Slot& slot = plan.slots[index];
            ASSERT_EQ(slot.physical_slot, s);
            ASSERT_EQ(slot.model_chunk, c);
            ASSERT_EQ(slot.layer, l);
            ASSERT_EQ(slot.io_branch_id, v * ring + s);
            ASSERT_EQ(slot.module, v * layers + first + l);
            ASSERT_EQ(slot.gradient_colour, plan.gradient_colours[c][s]);
            ASSERT_EQ(slot.colour, plan.slots[index % (ring * layers)].colour);
            ASSERT_TRUE((frames[{s, c, l}].insert(slot.io_branch_id).second));
            ++groups[slot.module];
          }
    for (const auto& [frame, branches] : frames) ASSERT_EQ(branches.size(), 2u);
    for (const auto& [group, members] : groups) ASSERT_EQ(members, ring);
  });
}

// The number of arenas does not grow with the variants, and colours do not depend on them.
TEST(Planner, ColoursDoNotDependOnTheVariants) {
  for_each_small_request([](PlanRequest request) {
    if (::testing::Test::HasFatalFailure()) return;
    const Plan two = make_plan(request);
    request.cp_sizes = {16, 8, 4, 2, 1};
    const Plan five = make_plan(request);
    for (int i = 0; i < five.frames() * 5; ++i) {
      ASSERT_EQ(five.slots[i].colour, two.slots[i % two.frames()].colour);
    }
  });
}

int arenas_of(const Plan& plan) {
  std::set<int> arenas;
  for (const Slot& slot : plan.slots) arenas.insert(slot.colour);
  return static_cast<int>(arenas.size());
}

// With a ring of 2 N and a limit of 3 N or more: N * ceil((w + 1) / N) arenas for one layer a
// chunk, and uniform layers multiply them. w are the forwards before the first
// backward.
TEST(Planner, ArenasHaveAClosedFormOnAlignedRings) {
  int plans = 0;
  for (int p = 2; p <= 6; ++p)
    for (int v = 2; v <= 4; ++v)
      for (int n = p; n <= p + 3; ++n)
        for (int rank = 0; rank < p; ++rank)
          for (int layers = 1; layers <= 2; ++layers) {
            const PipelineShape shape{p, rank, v, n};
            PlanRequest request{
                "", shape, std::vector<int>(v, layers), {1}, aligned_counts(shape, 4 * n), 2 * n};
            const int w = 2 * (p - rank - 1) + (v - 1) * n;
            ASSERT_EQ(arenas_of(make_plan(request)), layers * (n * ((w + n) / n)))
                << where(request);
            ++plans;
          }
  fmt::print("{} plans\n", plans);
}

// Returned gradients: 2 arenas on aligned rings, 3 on others; without virtual stages 1 with a ring
// of 1, 3 with an odd ring that wraps, else 2.
TEST(Planner, GradientArenasHaveAClosedForm) {
  for_each_small_request([](const PlanRequest& request) {
    if (::testing::Test::HasFatalFailure()) return;
    const bool all = std::all_of(request.layers_per_chunk.begin(), request.layers_per_chunk.end(),
                                 [](int layers) { return layers == 1; });
    const PipelineShape& shape = request.shape;
    // A short step has too few backwards for an odd cycle; one chunk is a case of its own.
    if (!all || shape.virtual_stages == 1) return;
    const Plan plan = make_plan(request);
    int colours = 0;
    for (const auto& chunk : plan.gradient_colours)
      for (const int colour : chunk) colours = std::max(colours, colour + 1);
    const int limit = request.counts.back(), ring = plan.ring_length;
    if (shape.virtual_stages == 0) {
      ASSERT_EQ(colours, ring == 1 ? 1 : ring % 2 == 1 && limit > ring ? 3 : 2) << where(request);
    } else if (ring % shape.microbatch_group_size == 0) {
      ASSERT_EQ(colours, 2) << where(request);
    } else {
      ASSERT_LE(colours, 3) << where(request);
    }
  });
}

// An order more never takes an edge away.
TEST(Planner, MoreOrdersOnlyAddConflicts) {
  for_each_small_request([](const PlanRequest& request) {
    if (::testing::Test::HasFatalFailure() || request.layers_per_chunk[0] != 1) return;
    const int ring = shortest_ring(request.shape, request.counts);
    const auto edges = [&](const std::vector<int>& counts, bool capture) {
      return edges_of(walk(covering_orders(request.shape, counts, ring, capture),
                           request.shape.chunks(), ring, {})
                          .together);
    };
    const Edges all = edges(request.counts, true);
    for (const bool capture : {false, true}) {
      const Edges fewer = edges({request.counts.front()}, capture);
      ASSERT_TRUE(std::includes(all.begin(), all.end(), fewer.begin(), fewer.end()));
    }
  });
}

// The public planner colours without the order of its capture; the default does not.
TEST(Planner, ThePublicModeLeavesOutTheCaptureOnly) {
  int unsafe = 0, equal = 0;
  for_each_small_request([&](PlanRequest request) {
    const Plan corrected = make_plan(request);
    request.omit_capture_order = true;
    const Plan published = make_plan(request);
    equal += corrected.slots == published.slots;
    const bool covered = std::find(request.counts.begin(), request.counts.end(),
                                   corrected.ring_length) != request.counts.end();
    if (covered) {
      EXPECT_EQ(corrected.slots, published.slots);
    }
    try {
      check(published);
    } catch (const Error& error) {
      EXPECT_TRUE(error.rule() == "PL04" || error.rule() == "PL05") << error.what();
      EXPECT_FALSE(covered);
      ++unsafe;
    }
  });
  fmt::print("{} equal, {} unsafe\n", equal, unsafe);
  EXPECT_GT(unsafe, 0);
}

// Steps whose last group is short are legal, and may be covered too.
TEST(Planner, ShortLastGroupsCanBeCovered) {
  int plans = 0;
  for (int p = 2; p <= 4; ++p)
    for (int rank = 0; rank < p; ++rank)
      for (int v = 2; v <= 3; ++v)
        for (int n = p + 1; n <= p + 3; ++n) {
          const PipelineShape shape{p, rank, v, n};
          PlanRequest request{"", shape, std::vector<int>(v, 1), {1}, legal_counts(shape, 3 * n)};
          const Plan plan = make_plan(request);
          check(plan);
          ASSERT_EQ(replay(plan), "") << where(request);
          ++plans;
        }
  fmt::print("{} plans\n", plans);
}

// Larger shapes than can be enumerated: P <= 16, V <= 6, up to 6 layers a chunk, 24 groups, longer
// rings, short last groups.
TEST(Planner, LargerPlansFindTheirBytes) {
  std::map<std::string, int> distribution;
  const bool holds = rc::check("every step of a larger plan finds its bytes", [&] {
    const int p = *rc::gen::inRange(1, 17);
    const int v = p == 1 ? 0 : *rc::gen::inRange(0, 7);
    const int n = *rc::gen::inRange(p, 2 * p + 3);
    const PipelineShape shape{p, *rc::gen::inRange(0, p), v, n};
    const int limit = (v == 0 ? 1 : n) * *rc::gen::inRange(1, 25);
    PlanRequest request{"", shape, {}, {2, 1}, {}, 0, false};
    request.layers_per_chunk =
        *rc::gen::container<std::vector<int>>(shape.chunks(), rc::gen::inRange(0, 7));
    const bool aligned = *rc::gen::inRange(0, 3) > 0;
    request.counts = aligned ? aligned_counts(shape, limit) : legal_counts(shape, limit);
    const int longer = *rc::gen::inRange(0, 4);
    request.ring_length = shortest_ring(shape, request.counts) + longer;
    ++distribution[fmt::format("V {}", v)];
    ++distribution[aligned ? "aligned counts" : "all legal counts"];
    ++distribution[longer == 0 ? "shortest ring" : "longer ring"];
    const Plan plan = make_plan(request);
    ++distribution[plan.frames() < 64    ? "below 64 frames"
                   : plan.frames() < 512 ? "below 512 frames"
                                         : "512 frames or more"];
    check(plan);
    RC_ASSERT(replay(plan) == "");
  });
  EXPECT_TRUE(holds);
  for (const auto& [what, count] : distribution) fmt::print("{:>8} {}\n", count, what);
}

// A million plans and their validation: order, plan, check.
TEST(Planner, AMillionPlansHoldTheirInvariants) {
  std::map<std::string, int> distribution;
  constexpr int kCases = 1'000'000;
  int frames = 0;
  for (int i = 0; i < kCases; ++i) {
    testing::Random random(static_cast<std::uint64_t>(i));
    const Plan plan = testing::random_plan(random);
    try {
      check(plan);
    } catch (const Error& error) {
      FAIL() << "seed " << i << ": " << error.what();
    }
    ++distribution[fmt::format("P {}", plan.shape.pipeline_size)];
    ++distribution[fmt::format("V {}", plan.shape.virtual_stages)];
    const int ring = shortest_ring(plan.shape, plan.covered_counts);
    ++distribution[plan.ring_length == ring ? "shortest ring" : "longer ring"];
    if (plan.layers() == 0) ++distribution["no layers"];
    frames = std::max(frames, plan.frames());
  }
  for (const auto& [what, count] : distribution) fmt::print("{:>8} {}\n", count, what);
  fmt::print("{} plans of up to {} frames\n", kCases, frames);
}

}  // namespace
}  // namespace slotgraph
