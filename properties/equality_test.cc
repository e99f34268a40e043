// Three-way equality, address reuse and memory return: execute() checks all of them for every case.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "core/device/device.h"
#include "core/models/blocks.h"
#include "fuzz/execute/execute.h"
#include "properties/testing.h"

namespace slotgraph::properties {
namespace {

// Every block alone, in every dtype, with a wrapped ring and mixed variants.
TEST(Equality, EveryBlockHoldsInEveryDtype) {
  for (const BlockKind& kind : blocks()) {
    for (const char* dtype : {"fp32", "fp64", "bf16"}) {
      const fuzz::Case value = uniform_case("p2v2n2-l1-k2.r0", kind.name, dtype);
      EXPECT_TRUE(value.wraps() && value.mixes());
      EXPECT_EQ(outcome(value), "holds") << kind.name << " " << dtype;
    }
  }
}

// Four variants, two layers in a chunk, no virtual stages and virtual stages, uneven and empty
// chunks.
TEST(Equality, HoldsOnPlansOfEveryShape) {
  for (const char* plan :
       {"p1-l2-k4.r0", "p2-l2-k2.r0", "p4v4n4-l1-k4.r3", "p2v2n4-l3-k2.r1", "uneven-p2v2n4-k2.r0",
        "zero-leading-p2v2n2-k2.r1", "zero-trailing-p2v2n2-k2.r1", "zero-middle-p2v3n2-k2.r1"}) {
    for (const char* block : {"mlp", "dropout"})
      EXPECT_EQ(outcome(uniform_case(plan, block, "fp32")), "holds") << plan << " " << block;
  }
}

TEST(Equality, FrozenLayersAndInputsWithoutGradientsHold) {
  for (const char* block : {"mlp", "add_inputs", "two_inputs", "running_mean"}) {
    fuzz::Case value = uniform_case("p2-l2-k2.r0", block, "fp32");
    for (int mask = 0; mask < 16; ++mask) {
      value.layers[0] = {block, (mask & 1) != 0 ? "all" : "none", (mask & 2) != 0, (mask & 4) != 0};
      value.layers[1].trainable = (mask & 8) != 0 ? "all" : "none";
      EXPECT_EQ(outcome(value), "holds") << block << " " << mask;
    }
  }
}

// Every second parameter, some of the gradients, extra inputs that are views of the first one.
TEST(Equality, SubsetsOfGradientsAndAliasedInputsHold) {
  for (const BlockKind& kind : blocks()) {
    fuzz::Case value = uniform_case("p2-l2-k2.r0", kind.name, "fp32");
    value.partial_backward = true;
    value.modes = slot_modes();
    for (fuzz::LayerCase& layer : value.layers) {
      layer.trainable = "alternate";
      layer.aliased_inputs = true;
    }
    EXPECT_EQ(outcome(value), "holds") << kind.name;
  }
}

// Only the parameter that forward does not use requires grad: there is nothing to differentiate.
TEST(Equality, AFrameWhoseTrainableParameterIsUnusedHolds) {
  fuzz::Case value = uniform_case("p2-l2-k2.r0", "unused_parameter", "fp32");
  for (fuzz::LayerCase& layer : value.layers) {
    layer.trainable = "alternate";
    layer.input_gradient = false;
  }
  EXPECT_EQ(outcome(value), "holds");
}

// Cases as the campaign draws them, with its seed 2; the campaign itself goes on from there.
TEST(Equality, GeneratedCasesHold) {
  int executed = 0, wrapped_and_mixed = 0, equal_tokens = 0;
  for (std::uint64_t index = 0; index < 40; ++index) {
    fuzz::Generated generated = fuzz::generate(sources(), fuzz::case_seed(2, index));
    if (generated.skipped || generated.value.plan.slots.size() > 128) continue;
    ++executed;
    wrapped_and_mixed += generated.value.wraps() && generated.value.mixes();
    equal_tokens += generated.value.equal_tokens();
    EXPECT_EQ(outcome(generated.value), "holds") << "seed 2, case " << index;
  }
  fmt::print("{} executed, {} wrap and mix, {} with equal tokens\n", executed, wrapped_and_mixed,
             equal_tokens);
  EXPECT_GT(executed, 15);
  EXPECT_GT(wrapped_and_mixed, 4);
}

// The same case gives the same record, whatever ran before it in the process.
TEST(Equality, RecordsDoNotDependOnEarlierCases) {
  device::initialise();
  const fuzz::Case first = uniform_case("p2-l2-k2.r0", "attention", "fp32");
  const fuzz::Case other = uniform_case("p4v4n4-l1-k4.r3", "dropout", "bf16");
  const auto before = to_json(fuzz::execute(first));
  fuzz::execute(other);
  EXPECT_EQ(to_json(fuzz::execute(first)), before);
}

}  // namespace
}  // namespace slotgraph::properties
