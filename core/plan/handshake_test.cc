#include "core/plan/handshake.h"

#include <gtest/gtest.h>

#include <functional>

#include "core/error.h"
#include "core/order/microbatch_counts.h"
#include "core/plan/json/plan_document.h"
#include "core/plan/json/plan_json.h"
#include "core/plan/planner.h"

namespace slotgraph {
namespace {

Plan example(int rank = 0, std::vector<int> layers = {1, 1}) {
  const PipelineShape shape{2, rank, 2, 4};
  return make_plan({"example", shape, std::move(layers), {2, 1}, aligned_counts(shape, 8)});
}

std::string text(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Handshake, EveryPartOfThePlanHasItsDigest) {
  const Plan plan = example();
  const Handshake mine = handshake(plan);
  const auto differs = [&](const std::function<void(Plan&)>& change) {
    Plan other = plan;
    change(other);
    const Handshake theirs = handshake(other);
    std::string parts;
    if (theirs.order != mine.order) parts += "order ";
    if (theirs.shapes != mine.shapes) parts += "shapes ";
    if (theirs.sizes != mine.sizes) parts += "sizes ";
    if (theirs.fields != mine.fields) parts += "fields ";
    EXPECT_EQ(theirs.digest != mine.digest, !parts.empty());
    return parts;
  };
  EXPECT_EQ(differs([](Plan& p) { p.name = "another"; }), "") << "a name means nothing";
  EXPECT_EQ(differs([](Plan& p) { std::swap(p.base_order[6], p.base_order[7]); }), "order ");
  EXPECT_EQ(differs([](Plan& p) { p.covered_counts.pop_back(); }), "order ");
  EXPECT_EQ(differs([](Plan& p) { p.shape.rank = 1; }), "shapes ");
  EXPECT_EQ(differs([](Plan& p) { p.cp_sizes[0] = 4; }), "sizes ");
  EXPECT_EQ(differs([](Plan& p) { p.slots.back().gradient_colour++; }), "fields ");
  EXPECT_EQ(differs([](Plan& p) { p.gradient_colours[1][2]++; }), "fields ");
}

TEST(Handshake, AMismatchNamesBothSidesAndTheParts) {
  const Plan plan = example();
  const Handshake mine = handshake(plan);
  const auto against = [&](const Handshake& theirs) {
    return text([&] { check_agreement("rank 0", mine, "rank 4", theirs); });
  };
  EXPECT_EQ(against(mine), "");
  Handshake theirs = mine;
  theirs.schema = 2;
  EXPECT_EQ(against(theirs),
            "[H01] plans of rank 0 and rank 4: found schema 2 of rank 4, expected schema 1 of rank "
            "0; plan both from the same configuration and version");
  theirs = mine;
  theirs.capabilities.push_back("short-groups");
  EXPECT_NE(against(theirs).find("[H02]"), std::string::npos);
  Plan other = plan;
  for (const int branch : {0, 14}) other.slots[branch].colour = 13;
  std::string found = against(handshake(other));
  EXPECT_NE(found.find("[H03]"), std::string::npos) << found;
  EXPECT_NE(found.find("fields "), std::string::npos) << found;
  EXPECT_EQ(found.find("order "), std::string::npos) << found;
  EXPECT_EQ(found.find("shapes "), std::string::npos) << found;
  other.covered_counts = {4};
  found = against(handshake(other));
  EXPECT_NE(found.find("found covered_microbatch_counts [4] of rank 4"), std::string::npos)
      << found;
}

TEST(Handshake, RanksOfOnePipelineAgreeOnAllButTheirOrders) {
  const Handshake first = handshake(example(0)), last = handshake(example(1, {1, 0}));
  const auto against = [&](const Handshake& theirs) {
    return text([&] { check_pipeline_agreement("rank 0", first, "rank 1", theirs); });
  };
  EXPECT_EQ(against(last), "");
  EXPECT_NE(against(first).find("[H04] plans of rank 0 and rank 1: found rank 0"),
            std::string::npos);
  const auto differs = [&](const char* part, const std::function<void(Handshake&)>& change) {
    Handshake other = last;
    change(other);
    EXPECT_NE(against(other).find(part), std::string::npos) << against(other);
  };
  differs("found ring_length 8", [](Handshake& h) { h.ring_length = 8; });
  differs("found cp_sizes [2]", [](Handshake& h) { h.cp_sizes = {2}; });
  differs("found covered_microbatch_counts [4]", [](Handshake& h) { h.covered_counts = {4}; });
  differs("found pipeline_size 3", [](Handshake& h) { h.shape.pipeline_size = 3; });
  differs("found virtual_stages 3", [](Handshake& h) { h.shape.virtual_stages = 3; });
  differs("found microbatch_group_size 5", [](Handshake& h) { h.shape.microbatch_group_size = 5; });
}

TEST(Capabilities, SayWhatARuntimeMustKnow) {
  EXPECT_EQ(capabilities_of(example()), (std::vector<std::string>{}));
  EXPECT_EQ(capabilities_of(example(0, {1, 0})), (std::vector<std::string>{"empty-chunks"}));
  PlanRequest request{"", {2, 0, 2, 4}, {1, 1}, {1}, {4, 6, 8}};
  EXPECT_EQ(capabilities_of(make_plan(request)), (std::vector<std::string>{"short-groups"}));
  request.counts = {4, 8};
  request.omit_capture_order = true;
  EXPECT_EQ(capabilities_of(make_plan(request)), (std::vector<std::string>{"unsafe-capture"}))
      << "frames that are live together while capturing share an arena";
  EXPECT_NE(text([] {
              check_supported(example(0, {1, 0}), {"capture-order"});
            }).find("[H02] plan: found the capability `empty-chunks`"),
            std::string::npos);
  EXPECT_EQ(text([] { check_supported(example(), {}); }), "");
}

TEST(PlanDocument, IsReadBackAndNoticesChanges) {
  const Plan plan = example();
  const nlohmann::json document = document_of(plan);
  const auto read = [](const nlohmann::json& json) {
    return text([&] { plan_from_any(JsonReader(json, "plan.json")); });
  };
  EXPECT_EQ(read(document), "");
  EXPECT_EQ(to_json(plan_from_any(JsonReader(document, "plan.json"))), to_json(plan));
  EXPECT_EQ(read(to_json(plan)), "") << "a bare plan";
  nlohmann::json changed = document;
  changed["plan"]["slots"][0][0] = 5;
  EXPECT_NE(read(changed).find("[H03] plan.json/digest"), std::string::npos) << read(changed);
  changed = document;
  changed["schema"] = 9;
  EXPECT_NE(read(changed).find("[H01] plan.json/schema: found schema 9, expected schema 1"),
            std::string::npos);
  changed = document;
  changed["capabilities"] = {"unsafe-capture"};
  EXPECT_NE(read(changed).find("[H02] plan.json/capabilities"), std::string::npos) << read(changed);
  changed = document;
  changed["plam"] = 1;
  EXPECT_NE(read(changed).find("[J05]"), std::string::npos);
}

}  // namespace
}  // namespace slotgraph
