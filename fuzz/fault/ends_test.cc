#include "fuzz/fault/ends.h"

#include <gtest/gtest.h>

#include <fstream>

#include "core/error.h"
#include "core/json_reader.h"

namespace slotgraph::fuzz {
namespace {

constexpr const char* kTable = "fuzz/fault/fatal_points.json";

const std::vector<std::string> kGuard{"cudaGetDevice", "c10::cuda::SetDevice",
                                      "c10::cuda::impl::CUDAGuardImpl::uncheckedSetDevice"};
constexpr const char* kTerminated = "terminate called after throwing\n";
constexpr const char* kFatal = "slotgraph: fatal: state cannot be restored\n";

TEST(KindOfEnd, TellsOnePlaceFromAnother) {
  const auto kind = [](int code, const char* errors, const std::vector<std::string>& stack) {
    return kind_of_end({code, errors, 1, stack}, FatalTable::read(kTable));
  };
  EXPECT_EQ(kind(134, kTerminated, kGuard), "code 134, upstream: uncheckedSetDevice");
  EXPECT_EQ(kind(134, "a warning 7\nterminate called in 0x7f12 of 3\nmore", {}),
            "code 134, terminate called in # of #");
  EXPECT_EQ(kind(70, kFatal, kGuard), "code 70, slotgraph: fatal: state cannot be restored");
  EXPECT_EQ(kind(137, "", {}), "code 137");
}

std::string refusal(const std::string& path) {
  try {
    (void)FatalTable::read(path);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(FatalTable, OffsetsOfAnotherBuildDoNotCount) {
  const std::vector<std::string> stack{"cudaGetDevice", "libc10_cuda.so+0x23e9b"};
  EXPECT_EQ(FatalTable::read(kTable).find(stack), stack[1]);
  const std::string here = build_ids().at("libc10_cuda.so");
  const std::string path = testing::TempDir() + "table.json";
  nlohmann::json table = read_json_file(kTable);
  table["libraries"] = {{{"name", "libc10_cuda.so"}, {"build_id", "0123"}}};
  std::ofstream(path) << table;
  const FatalTable other = FatalTable::read(path);
  EXPECT_EQ(other.find(stack), "");
  EXPECT_NE(other.find(kGuard), "") << "a symbol is the same in every build";
  ASSERT_EQ(other.warnings().size(), 1u);
  for (const std::string& part : {path + "/libraries/0", "libc10_cuda.so of build " + here,
                                 std::string("expected build 0123")})
    EXPECT_NE(other.warnings()[0].find(part), std::string::npos) << other.warnings()[0];
  // A library that this process does not have says nothing.
  table["libraries"][0]["name"] = "libc10_other.so";
  std::ofstream(path) << table;
  EXPECT_EQ(FatalTable::read(path).warnings(), std::vector<std::string>{});
}

TEST(FatalTable, BrokenFilesAreRefused) {
  const std::string path = testing::TempDir() + "broken.json";
  nlohmann::json table = read_json_file(kTable);
  table["points"][0].erase("symbol");
  std::ofstream(path) << table;
  EXPECT_NE(refusal(path).find("/points/0"), std::string::npos) << refusal(path);
  EXPECT_TRUE(refusal(path + ".none").starts_with("[J01]"));
}

}  // namespace
}  // namespace slotgraph::fuzz
