// Renders records. Each renderer is a pure function from records to the text of one file; records
// are sorted by case index first, so that the order of the input files does not matter.
#ifndef REPORTS_RENDER_H_
#define REPORTS_RENDER_H_

#include <string>
#include <vector>

#include "core/record/record.h"

namespace slotgraph::reports {

// One test case for each record: violated is a failure, unknown an error, skipped is skipped.
std::string junit(std::vector<Record> records);

// Totals, then what does not hold with the command that reproduces it, then a row for each plan.
std::string markdown(std::vector<Record> records);

}  // namespace slotgraph::reports

#endif  // REPORTS_RENDER_H_
