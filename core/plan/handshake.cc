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
  throw Error({rule, fmt::format("plans of {} and {}", mine, theirs),
               fmt::format("{} of {}", found, theirs), fmt::format("{} of {}", expected, mine),
               "plan both from the same configuration and version"});
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
  result.ring_length = plan.ring_length;
  result.variants = plan.variants();
  result.order =
      sha256(fmt::format("{};{}", text_of(plan.base_order), text_of(plan.covered_counts)));
  result.shapes = sha256(fmt::format("{},{},{},{};{};{}", plan.shape.pipeline_size, plan.shape.rank,
                                     plan.shape.virtual_stages, plan.shape.microbatch_group_size,
                                     text_of(plan.layers_per_chunk), plan.ring_length));
  result.sizes = sha256(text_of(plan.cp_sizes));
  std::string fields;
  for (const Slot& s : plan.slots) {
    fields +=
        fmt::format("{},{},{},{},{},{},{};", s.saved_arena_id, s.physical_slot, s.io_branch_id,
                    s.model_chunk, s.layer, s.warmup_alias_group, s.user_grad_arena_id);
  }
  for (const auto& colours : plan.user_grad_colours) fields += text_of(colours) + ";";
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
  std::string found, expected;
  const auto compare = [&](const char* part, const std::string& mine, const std::string& theirs) {
    if (mine == theirs) return;
    found += fmt::format("{}{} {}", found.empty() ? "" : ", ", part, theirs.substr(0, 8));
    expected += fmt::format("{}{} {}", expected.empty() ? "" : ", ", part, mine.substr(0, 8));
  };
  compare("order", mine.order, theirs.order);
  compare("shapes", mine.shapes, theirs.shapes);
  compare("variants", mine.sizes, theirs.sizes);
  compare("fields", mine.fields, theirs.fields);
  if (found.empty()) compare("digest", mine.digest, theirs.digest);
  refuse("H03", my_name, their_name, found, expected);
}

void check_pipeline_agreement(const std::string& my_name, const Handshake& mine,
                              const std::string& their_name, const Handshake& theirs) {
  check_schema(my_name, mine, their_name, theirs);
  if (mine.ring_length == theirs.ring_length && mine.variants == theirs.variants) return;
  refuse("H04", my_name, their_name,
         fmt::format("ring {}, {} variants", theirs.ring_length, theirs.variants),
         fmt::format("ring {}, {} variants", mine.ring_length, mine.variants));
}

void check_supported(const Plan& plan, const std::vector<std::string>& supported) {
  for (const std::string& name : capabilities_of(plan)) {
    if (std::find(supported.begin(), supported.end(), name) != supported.end()) continue;
    throw Error({"H02", "plan", fmt::format("the capability `{}`", name),
                 fmt::format("only {}", fmt::join(supported, ", ")),
                 "use a runtime that has it, or another plan"});
  }
}

}  // namespace slotgraph
