// A worker process: runs the cases that its parent names and answers with their records.
#ifndef FUZZ_CAMPAIGN_WORKER_H_
#define FUZZ_CAMPAIGN_WORKER_H_

#include <cstdint>
#include <nlohmann/json.hpp>

#include "core/record/record.h"
#include "fuzz/campaign/options.h"
#include "fuzz/generate/generate.h"

namespace slotgraph::fuzz {

// The protocol: the index of a case, and its record.
struct CaseRequest {
  std::uint64_t index = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(CaseRequest, index)

struct CaseReply {
  Record record;
};
void to_json(nlohmann::json& json, const CaseReply& reply);
void from_json(const nlohmann::json& json, CaseReply& reply);

// The case of that index.
Generated draw_case(const Options& options, const Sources& sources, std::uint64_t index);

// Serves CaseRequest. Ends with the end of its input; kViolated if cases have left something
// behind.
int run_worker(const Options& options, const Sources& sources);

}  // namespace slotgraph::fuzz

#endif  // FUZZ_CAMPAIGN_WORKER_H_
