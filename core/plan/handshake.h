// Two sides agree that they mean the same plan before either captures: peers of a rank, a planner
// and a runtime, a file and its reader.
#ifndef CORE_PLAN_HANDSHAKE_H_
#define CORE_PLAN_HANDSHAKE_H_

#include <string>
#include <vector>

#include "core/plan/plan.h"

namespace slotgraph {

inline constexpr int kPlanSchema = 1;  // of the seven fields and of what the digests cover

// What a plan asks of the runtime that uses it, by name, ascending:
//   "empty-chunks"       chunks without layers take part in orders and gradient colours
//   "short-groups"       it covers counts whose last microbatch group is short
//   "unsafe-capture"     frames that are live together only while capturing may share an arena, as
//                        in plans of the public planner: a capture must not rely on their bytes
// The plan must hold check_structure.
std::vector<std::string> capabilities_of(const Plan& plan);

struct Handshake {
  int schema = kPlanSchema;
  std::vector<std::string> capabilities;  // of the plan
  // In clear, what the ranks of a pipeline have in common, and the rank.
  PipelineShape shape;
  int ring_length = 0;
  std::vector<int> cp_sizes;
  std::vector<int> covered_counts;
  // SHA-256 of the parts in canonical form, and of all of them.
  std::string order;   // base order and covered counts
  std::string shapes;  // pipeline shape, layers, ring length
  std::string sizes;   // CP sizes of the variants
  std::string fields;  // of every slot, and the gradient colours
  std::string digest;
  bool operator==(const Handshake&) const = default;
};
// The plan as for capabilities_of.
Handshake handshake(const Plan& plan);
// The digest alone, of any plan.
std::string digest_of(const Plan& plan);

// Throws Error naming both sides with the first difference: H01 schema, H02 capabilities, H03
// digests: numbers that differ in clear, other parts by their digests. Peers at one pipeline rank
// must agree so.
void check_agreement(const std::string& my_name, const Handshake& mine,
                     const std::string& their_name, const Handshake& theirs);

// Checks two ranks of one pipeline, whose orders and colours may differ. Throws Error: H01, and H04
// the same rank, or another pipeline size, virtual stages, group size, ring length, CP sizes or
// covered counts.
void check_pipeline_agreement(const std::string& my_name, const Handshake& mine,
                              const std::string& their_name, const Handshake& theirs);

// Throws Error H02 if the plan asks for what `supported` lacks.
void check_supported(const Plan& plan, const std::vector<std::string>& supported);

}  // namespace slotgraph

#endif  // CORE_PLAN_HANDSHAKE_H_
