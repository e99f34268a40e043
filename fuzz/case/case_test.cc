#include "fuzz/case/case.h"

#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <limits>

#include "core/error.h"
#include "core/plan/json/plan_json.h"
#include "core/plan/json/public_json.h"

namespace slotgraph::fuzz {
namespace {

nlohmann::json good() {
  Case value;
  const std::string path = "core/plan/testdata/p2v2n2-l1-k2.r0.json";
  const nlohmann::json json = read_json_file(path);
  value.plan = plan_from_public(JsonReader(json, path), PublicSlots::kCorrected);
  value.schedule = {"test", {0, 1}};
  value.layers = {{"mlp"}, {"mlp"}};
  value.tokens = {4, 8};
  return to_json(value);
}

std::string refusal(const nlohmann::json& json) {
  try {
    case_from_json(JsonReader(json, "case.json"));
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Case, AGoodOneIsRead) { EXPECT_EQ(refusal(good()), ""); }

// Every field in turn: missing, another type, NaN, huge. Nothing crashes, every refusal names the
// field.
TEST(Case, EveryBrokenFieldIsRefusedByName) {
  const nlohmann::json values[] = {nullptr,
                                   "text",
                                   -1,
                                   1e300,
                                   std::numeric_limits<std::uint64_t>::max(),
                                   nlohmann::json::array({nullptr}),
                                   nlohmann::json::object()};
  const nlohmann::json whole = good();
  for (const auto& [name, ignored] : whole.items()) {
    nlohmann::json json = good();
    json.erase(name);
    EXPECT_NE(refusal(json).find("`" + name + "`"), std::string::npos)
        << name << ": " << refusal(json);
    for (const nlohmann::json& value : values) {
      json = good();
      json[name] = value;
      const std::string text = refusal(json);
      // Seeds may be any unsigned number.
      if (name.ends_with("seed") && value.is_number_unsigned()) continue;
      EXPECT_NE(text.find(name), std::string::npos) << name << " = " << value << ": " << text;
    }
  }
  for (const auto& [name, ignored] : whole["plan"].items()) {
    nlohmann::json json = good();
    json["plan"].erase(name);
    EXPECT_NE(refusal(json).find("case.json/plan"), std::string::npos) << name;
  }
}

TEST(Case, UnknownSchemaAndFieldsAndMisfitsAreRefused) {
  const auto rule = [](const std::function<void(nlohmann::json&)>& spoil) {
    nlohmann::json json = good();
    spoil(json);
    const std::string text = refusal(json);
    return text.substr(0, text.find(']') + 1);
  };
  EXPECT_EQ(rule([](auto& j) { j["schema"] = 1; }), "[F01]");
  EXPECT_EQ(rule([](auto& j) { j["extra"] = 2; }), "[J05]");
  EXPECT_EQ(rule([](auto& j) { j["layers"].erase(0); }), "[F02]");
  EXPECT_EQ(rule([](auto& j) { j["tokens"].push_back(3); }), "[F02]");
  EXPECT_EQ(rule([](auto& j) { j["schedule"]["variants"] = {0, 2}; }), "[F02]");
  EXPECT_EQ(rule([](auto& j) {
              j["schedule"]["variants"] = {0, 1, 0};
            }),
            "[F02]")
      << "three is not covered";
  EXPECT_EQ(rule([](auto& j) { j["plan"]["slots"][1][0] = 0; }), "[PL03]");
  EXPECT_EQ(rule([](auto& j) { j["dtype"] = "fp16"; }), "[J04]");
  EXPECT_EQ(rule([](auto& j) { j["hidden"] = 0; }), "[J04]");
}

TEST(Case, ATruncatedFileIsRefusedWithItsPlace) {
  const std::string path = ::testing::TempDir() + "/truncated.json";
  const std::string text = good().dump(1);
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{1}, text.size() / 2, text.size() - 2}) {
    std::ofstream(path) << text.substr(0, size);
    try {
      read_case(path);
      ADD_FAILURE() << size;
    } catch (const Error& error) {
      EXPECT_EQ(error.rule(), "J02");
      EXPECT_NE(std::string(error.what()).find(path), std::string::npos);
    }
  }
}

// SHA-256 of canonical JSON: equal values, equal digests, whatever the order of fields in a file.
TEST(Case, DigestIsThatOfTheCanonicalForm) {
  const nlohmann::json json = good();
  const Case value = case_from_json(JsonReader(json, "case"));
  EXPECT_EQ(digest(value).size(), 64u);
  EXPECT_EQ(digest(value), digest(case_from_json(JsonReader(json, "again"))));
  Case other = value;
  other.steps = 3;
  EXPECT_NE(digest(other), digest(value));
}

}  // namespace
}  // namespace slotgraph::fuzz
