#include "fuzz/repro/reproducer.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>

#include "core/error.h"
#include "core/files.h"

namespace slotgraph::fuzz {
namespace {

constexpr const char* kFolder = "fuzz/repro/testdata/device_guard";

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string refusal(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

// Written again, the folder of an earlier run is the same, byte for byte.
TEST(Reproducer, ReadsBackAndWritesTheSame) {
  const Reproducer reproducer = read_reproducer(kFolder);
  EXPECT_EQ(reproducer.experiment.injection->point.name, "cudaGetDevice");
  EXPECT_TRUE(
      reproducer.observation.signature.starts_with("process: it ended: code 134, upstream"));
  const std::string folder = testing::TempDir() + "again";
  write_reproducer(folder, reproducer);
  for (const char* name : {"experiment.json", "reproducer_test.cc"}) {
    EXPECT_EQ(text_of(folder + "/" + name), text_of(std::string(kFolder) + "/" + name)) << name;
  }
  const auto permissions = std::filesystem::status(folder + "/repro.sh").permissions();
  EXPECT_NE(permissions & std::filesystem::perms::owner_exec, std::filesystem::perms::none);
}

TEST(Reproducer, OtherVersionsAndBrokenFilesAreRefused) {
  const std::string folder = testing::TempDir() + "broken";
  write_reproducer(folder, read_reproducer(kFolder));
  const nlohmann::json good = read_json_file(folder + "/manifest.json");
  const auto with = [&](const char* field, const nlohmann::json& value) {
    nlohmann::json manifest = good;
    manifest[field] = value;
    write_file(folder + "/manifest.json", manifest.dump());
    return refusal([&] { (void)read_reproducer(folder); });
  };
  EXPECT_TRUE(with("slotgraph", "0.1").starts_with("[F06]"));
  EXPECT_TRUE(with("schema", 99).starts_with("[F01]"));
  EXPECT_TRUE(with("observation", nlohmann::json::object()).starts_with("[J03]"));
  EXPECT_TRUE(with("slotgraph", 3).starts_with("[J04]"));
  EXPECT_EQ(with("slotgraph", good["slotgraph"]), "");
  write_file(folder + "/experiment.json", "{");
  EXPECT_TRUE(refusal([&] { (void)read_reproducer(folder); }).starts_with("[J02]"));
}

TEST(Observation, EveryVerdictReadsBack) {
  for (const Verdict verdict : kVerdicts) {
    const nlohmann::json json = to_json(Observation{verdict, "signature", {"finding"}});
    const Observation again = observation_from_json(JsonReader(json, "x"));
    EXPECT_EQ(again.verdict, verdict);
    EXPECT_EQ(to_json(again), json);
  }
}

TEST(Experiment, AModeIsAskedForWithAnInjectionOnly) {
  nlohmann::json json = to_json(read_reproducer(kFolder).experiment);
  json["mode"] = "fast";
  EXPECT_TRUE(refusal([&] {
                (void)experiment_from_json(JsonReader(json, "x"));
              }).starts_with("[J04] x/mode"));
  json["injection"] = nullptr;
  EXPECT_EQ(refusal([&] { (void)experiment_from_json(JsonReader(json, "x")); }), "");
}

}  // namespace
}  // namespace slotgraph::fuzz
