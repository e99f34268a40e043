// The corpora that fuzzing left behind, with the ordinary compiler.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include "core/plan/json/fuzz/targets.h"

namespace slotgraph {
namespace {

int run_corpus(const std::string& name, void (*target)(const std::string&)) {
  std::set<std::string> files;
  for (const auto& entry :
       std::filesystem::directory_iterator("core/plan/json/fuzz/corpus/" + name))
    files.insert(entry.path());
  for (const std::string& file : files) {
    std::ifstream input(file, std::ios::binary);
    std::ostringstream text;
    text << input.rdbuf();
    target(text.str());
  }
  fmt::print("{}: {} inputs\n", name, files.size());
  return static_cast<int>(files.size());
}

TEST(Corpus, PlansAreReadOrRefused) { EXPECT_GT(run_corpus("plan", fuzz_plan), 50); }
TEST(Corpus, ShapesArePlannedOrRefused) { EXPECT_GT(run_corpus("shape", fuzz_shape), 50); }
TEST(Corpus, SchedulesAreMadeOrRefused) { EXPECT_GT(run_corpus("schedule", fuzz_schedule), 50); }

}  // namespace
}  // namespace slotgraph
