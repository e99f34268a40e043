#include "core/plan/handshake.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/digest.h"
#include "core/error.h"

namespace slotgraph {
namespace {

std::string text_of(const std::vector<int>& numbers) {
  return fmt::format("{}", fmt::join(numbers, ","));
}

[[noreturn]] void refuse(const char* rule, const std::string& mine, const std::string& theirs,
                         std::string found, std::string expected) {
  throw Error(Error::kInput,
              {rule, fmt::format("plans of {} and {}", mine, theirs),
               fmt::format("{} of {}", found, theirs), fmt::format("{} of {}", expected, mine),
               "plan both from the same configuration and version"});
}

// Names and values of what differs, on both sides.
struct Differences {
  std::string found, expected;

  template <typename Value>
  void add(const char* name, const Value& mine, const Value& theirs) {
    if (mine == theirs) return;
    const char* comma = found.empty() ? "" : ", ";
    found += fmt::format("{}{} {}", comma, name, theirs);
    expected += fmt::format("{}{} {}", comma, name, mine);
  }
};

void add_pipeline(const Handshake& mine, const Handshake& theirs, Differences& differences) {
  differences.add("pipeline_size", mine.shape.pipeline_size, theirs.shape.pipeline_size);
  differences.add("virtual_stages", mine.shape.virtual_stages, theirs.shape.virtual_stages);
  differences.add("microbatch_group_size", mine.shape.microbatch_group_size,
                  theirs.shape.microbatch_group_size);
  differences.add("ring_length", mine.ring_length, theirs.ring_length);
  differences.add("cp_sizes", mine.cp_sizes, theirs.cp_sizes);
  differences.add("covered_microbatch_counts", mine.covered_counts, theirs.covered_counts);
}

void check_schema(const std::string& my_name, const Handshake& mine, const std::string& their_name,
                  const Handshake& theirs) {
  if (mine.schema == theirs.schema) return;
  refuse("H01", my_name, their_name, fmt::format("schema {}", theirs.schema),
         fmt::format("schema {}", mine.schema));
}

}  // namespace

std::vector<std::string> capabilities_of(const Plan& plan) {
  std::vector<std::string> names;
  if (std::count(plan.layers_per_chunk.begin(), plan.layers_per_chunk.end(), 0) > 0)
    names.emplace_back("empty-chunks");
  const int group = plan.shape.virtual_stages == 0 ? 1 : plan.shape.microbatch_group_size;
  if (std::any_of(plan.covered_counts.begin(), plan.covered_counts.end(),
                  [group](int count) { return count % group != 0; }))
    names.emplace_back("short-groups");
  if (!covers_capture(plan)) names.emplace_back("unsafe-capture");
  return names;
}

namespace {

Handshake digests_of(const Plan& plan) {
  Handshake result;
  result.shape = plan.shape;
  result.ring_length = plan.ring_length;
  result.cp_sizes = plan.cp_sizes;
  result.covered_counts = plan.covered_counts;
  result.order =
      sha256(fmt::format("{};{}", text_of(plan.base_order), text_of(plan.covered_counts)));
  result.shapes = sha256(fmt::format("{},{},{},{};{};{}", plan.shape.pipeline_size, plan.shape.rank,
                                     plan.shape.virtual_stages, plan.shape.microbatch_group_size,
                                     text_of(plan.layers_per_chunk), plan.ring_length));
  result.sizes = sha256(text_of(plan.cp_sizes));
  std::string fields;
  for (const Slot& s : plan.slots) {
    fields += fmt::format("{},{},{},{},{},{},{};", s.colour, s.physical_slot, s.io_branch_id,
                          s.model_chunk, s.layer, s.module, s.gradient_colour);
  }
  for (const auto& colours : plan.gradient_colours) fields += text_of(colours) + ";";
  result.fields = sha256(fields);
  result.digest = sha256(fmt::format("{};{};{};{};{}", result.schema, result.order, result.shapes,
                                     result.sizes, result.fields));
  return result;
}

}  // namespace

Handshake handshake(const Plan& plan) {
  Handshake result = digests_of(plan);
  result.capabilities = capabilities_of(plan);
  return result;
}

std::string digest_of(const Plan& plan) { return digests_of(plan).digest; }

void check_agreement(const std::string& my_name, const Handshake& mine,
                     const std::string& their_name, const Handshake& theirs) {
  check_schema(my_name, mine, their_name, theirs);
  if (mine.capabilities != theirs.capabilities) {
    refuse("H02", my_name, their_name, fmt::format("capabilities {}", theirs.capabilities),
           fmt::format("capabilities {}", mine.capabilities));
  }
  if (mine.digest == theirs.digest) return;
  Differences differences;
  differences.add("pipeline_rank", mine.shape.rank, theirs.shape.rank);
  add_pipeline(mine, theirs, differences);
  if (differences.found.empty()) {
    differences.add("order", mine.order.substr(0, 8), theirs.order.substr(0, 8));
    differences.add("shapes", mine.shapes.substr(0, 8), theirs.shapes.substr(0, 8));
    differences.add("fields", mine.fields.substr(0, 8), theirs.fields.substr(0, 8));
    differences.add("digest", mine.digest.substr(0, 8), theirs.digest.substr(0, 8));
  }
  refuse("H03", my_name, their_name, differences.found, differences.expected);
}

void check_pipeline_agreement(const std::string& my_name, const Handshake& mine,
                              const std::string& their_name, const Handshake& theirs) {
  check_schema(my_name, mine, their_name, theirs);
  Differences differences;
  add_pipeline(mine, theirs, differences);
  if (!differences.found.empty())
    refuse("H04", my_name, their_name, differences.found, differences.expected);
  if (mine.shape.rank == theirs.shape.rank) {
    refuse("H04", my_name, their_name, fmt::format("rank {}", theirs.shape.rank),
           fmt::format("another rank than {}", mine.shape.rank));
  }
}

void check_supported(const Plan& plan, const std::vector<std::string>& supported) {
  for (const std::string& name : capabilities_of(plan)) {
    if (std::find(supported.begin(), supported.end(), name) != supported.end()) continue;
    throw Error(Error::kInput, {"H02", "plan", fmt::format("the capability `{}`", name),
                                fmt::format("only {}", fmt::join(supported, ", ")),
                                "use a runtime that has it, or another plan"});
  }
}

}  // namespace slotgraph
