// A second reading of the rules in plan.h and capture_call.h, to compare check() with.
//
// It shares no code with the validators: a rule is a predicate over the whole value, an order is a
// closed formula for the positions of its events, and what is live is a set of intervals of them.
#ifndef CORE_TESTING_DECISION_ORACLE_H_
#define CORE_TESTING_DECISION_ORACLE_H_

#include <set>
#include <string>

#include "core/plan/capture_call.h"
#include "core/plan/plan.h"

namespace slotgraph::testing {

// The rule that check() must name, "" if it must accept. Numbers of microbatches must be small (all
// covered orders are laid out); entries of an order are within int, not finite, or fractions.
//
// A plan whose liveness is broken gets the first violation in the orders of the covered counts,
// ascending, then in the base order; in one order the earliest event decides, at one event PL14
// before PL04 and PL05. A plan without layers has no colours and nothing that lives.
std::string decide(const Plan& plan);
std::string decide(const CaptureCall& call);

// Of a plan that breaks none of the rules before PL14: the rule that decides in each order that
// breaks one. check() looks at a dominating subset of the orders, so it may name any of these, but
// it must name one if there is one. All other rules are exact.
std::set<std::string> liveness_violations(const Plan& plan);

}  // namespace slotgraph::testing

#endif  // CORE_TESTING_DECISION_ORACLE_H_
