#include "core/plan/json/public_json.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <functional>

#include "core/error.h"

namespace slotgraph {
namespace {

std::vector<std::string> public_plans() {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator("core/plan/testdata")) {
    if (entry.path().extension() == ".json") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

// Every derived field of every public plan: orders, rings, limits, edges, colours, slots, with and
// without the capture order.
TEST(PublicDocument, EqualsThePublicPlannerFieldByField) {
  int files = 0, fields = 0;
  for (const std::string& file : public_plans()) {
    const nlohmann::json published = read_json_file(file);
    const JsonReader config(published.at("config"), file + "/config");
    const nlohmann::json ours = public_document(config);
    ++files;
    for (const auto& [name, value] : ours.items()) {
      const bool in_config = name == "data_scheduler_bound" || name == "max_microbatches";
      const nlohmann::json& theirs = in_config ? published.at("config") : published;
      ASSERT_TRUE(theirs.contains(name)) << file << " " << name;
      EXPECT_EQ(value, theirs.at(name)) << file << " " << name;
      ++fields;
    }
    for (const auto& [name, value] : published.items()) {
      const bool described = name == "name" || name == "group" || name == "note" ||
                             name == "source" || name == "config";
      EXPECT_TRUE(described || ours.contains(name)) << file << " " << name;
    }
  }
  EXPECT_EQ(files, 104);
  fmt::print("{} fields of {} plans\n", fields, files);
}

// The default mode covers the capture order: its plans are the corrected ones, and all hold.
TEST(MakePlan, EqualsTheCorrectedPublicPlansByDefault) {
  for (const std::string& file : public_plans()) {
    const nlohmann::json published = read_json_file(file);
    const JsonReader reader(published, file);
    const Plan expected = plan_from_public(reader, PublicSlots::kCorrected);
    const Plan plan = make_plan(request_from_config(reader.field("config")));
    check(plan);
    EXPECT_EQ(plan.slots, expected.slots) << file;
    EXPECT_EQ(plan.gradient_colours, expected.gradient_colours) << file;
    EXPECT_EQ(plan.ring_length, expected.ring_length) << file;
    EXPECT_EQ(plan.base_order, expected.base_order) << file;
  }
}

TEST(RequestFromConfig, DerivesTheLimitOfMicrobatches) {
  nlohmann::json published = read_json_file("core/plan/testdata/qwen3-235b-pp4-vpp12.r0.json");
  nlohmann::json& config = published.at("config");
  config.erase("max_microbatches");
  EXPECT_EQ(request_from_config(JsonReader(config, "config")).counts.back(), 32);
  config["runtime_microbatches"] = 64;
  EXPECT_EQ(request_from_config(JsonReader(config, "config")).counts.back(), 256);
}

TEST(RequestFromConfig, NamesTheFieldThatIsWrong) {
  const nlohmann::json published = read_json_file("core/plan/testdata/p2v2n4-l1-k1.r0.json");
  const auto text = [&](const std::function<void(nlohmann::json&)>& change) -> std::string {
    nlohmann::json config = published.at("config");
    change(config);
    try {
      make_plan(request_from_config(JsonReader(config, "shape.json")));
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  const auto names = [&](const std::string& part,
                         const std::function<void(nlohmann::json&)>& change) {
    EXPECT_NE(text(change).find(part), std::string::npos) << text(change);
  };
  names("[J03] shape.json: found no field `cp_sizes`", [](auto& c) { c.erase("cp_sizes"); });
  names("[J04] shape.json/pipeline_size: found 0", [](auto& c) { c["pipeline_size"] = 0; });
  names("[J04] shape.json/layers_per_chunk/1", [](auto& c) { c["layers_per_chunk"][1] = -1; });
  names("[OC1] max_microbatches: found 10", [](auto& c) { c["max_microbatches"] = 10; });
  names("[OP1] pipeline_rank", [](auto& c) { c["pipeline_rank"] = 2; });
  names("[PL00] cp_sizes", [](auto& c) { c["cp_sizes"] = {1, 2}; });
  names("[PL00] layers_per_chunk", [](auto& c) { c["layers_per_chunk"] = {1}; });
  names("[PL00] plan", [](auto& c) {
    c["layers_per_chunk"] = {1024, 1024};
    c["max_microbatches"] = 512;
    c["microbatch_group_size"] = 256;
  });
}

}  // namespace
}  // namespace slotgraph
