// A case: everything that one fuzz run depends on, as a plain value with a self-contained JSON
// form.
#ifndef FUZZ_CASE_CASE_H_
#define FUZZ_CASE_CASE_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/graph/mode.h"
#include "core/json_reader.h"
#include "core/plan/plan.h"

namespace slotgraph::fuzz {

// One layer of the model: the same in every variant and slot.
struct LayerCase {
  std::string block;              // a registered block kind
  std::string trainable = "all";  // which parameters require grad: `all`, `none`, `alternate`
  // Whether the first input of a chunk's first layer requires grad; later layers follow the one
  // before them.
  bool input_gradient = true;
  bool extra_gradients = true;  // of extra inputs that can have one
  bool aliased_inputs = false;  // extra inputs as large as the first one are views of it
  bool operator==(const LayerCase&) const = default;
};

struct ScheduleCase {
  std::string source;         // `adversarial`, or which public schedule: for people
  std::vector<int> variants;  // of each microbatch
  bool operator==(const ScheduleCase&) const = default;
};

struct Case {
  std::uint64_t seed = 0;  // of all tensor values
  Plan plan;
  ScheduleCase schedule;
  std::vector<LayerCase> layers;  // of all chunks, in order
  std::int64_t hidden = 16;
  std::string dtype = "fp32";        // fp32, fp64 or bf16
  std::vector<std::int64_t> tokens;  // of each variant
  int steps = 2;
  std::uint64_t order_seed = 0;         // order of queued device work
  std::string addresses = "ascending";  // ascending, descending or seeded
  int poison = 0xFF;
  std::vector<Mode> modes = {Mode::kPlacement};  // slot modes that are compared with eager
  // Before each replay of a slot graph every dead byte is poisoned, after it every byte that others
  // own is verified.
  bool shadow = false;
  // Each backward asks for some of the gradients only, drawn from the seed.
  bool partial_backward = false;

  bool wraps() const { return static_cast<int>(schedule.variants.size()) > plan.ring_length; }
  // Two variants inside one ring length of microbatches.
  bool mixes() const;
  bool equal_tokens() const;
};

inline constexpr int kCaseSchema = 3;

nlohmann::json to_json(const Case& value);
// Throws Error: J.. malformed (missing or unknown field, wrong type, out of range), F01 unknown
// schema, F02 parts that do not fit each other, P.. a plan that breaks an invariant.
Case case_from_json(const JsonReader& reader);
Case read_case(const std::string& path);

// SHA-256 of the canonical JSON (sorted keys, no spaces), in hexadecimal.
std::string digest(const Case& value);

}  // namespace slotgraph::fuzz

#endif  // FUZZ_CASE_CASE_H_
