// Cases for the property suites.
#ifndef PROPERTIES_TESTING_H_
#define PROPERTIES_TESTING_H_

#include <string>

#include "fuzz/case/case.h"
#include "fuzz/generate/generate.h"

namespace slotgraph::properties {

// Every layer of the plan is this block; variants rotate; two steps. Tokens are 24 / CP size, at
// least 2.
fuzz::Case uniform_case(const std::string& plan, const std::string& block,
                        const std::string& dtype);

// The campaign's own sources.
const fuzz::Sources& sources();

// `holds`, or the findings, one a line.
std::string outcome(const fuzz::Case& value);

}  // namespace slotgraph::properties

#endif  // PROPERTIES_TESTING_H_
