// Where a set of slot graphs has its survivors, as one number.
#ifndef FUZZ_EXECUTE_LAYOUT_DIGEST_H_
#define FUZZ_EXECUTE_LAYOUT_DIGEST_H_

#include <string>

#include "core/graph/graph_callables.h"
#include "core/plan/plan.h"

namespace slotgraph::fuzz {

// SHA-256, in hexadecimal, of what every branch owns, as places in arenas that are numbered as they
// first appear: equal sets have equal digests wherever their arenas lie.
std::string layout_digest(const CallableSet& set, const Plan& plan);

}  // namespace slotgraph::fuzz

#endif  // FUZZ_EXECUTE_LAYOUT_DIGEST_H_
