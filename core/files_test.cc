#include "core/files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "core/error.h"

namespace slotgraph {
namespace {

std::string read(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

TEST(WriteFile, ReplacesAFileAndMakesItsFolder) {
  const std::string path = ::testing::TempDir() + "/write/a/file";
  write_file(path, "one");
  write_file(path, "two");
  EXPECT_EQ(read(path), "two");
  EXPECT_FALSE(std::filesystem::exists(path + ".part"));
}

// As root, a rename onto a device would take it away from the whole machine.
TEST(WriteFile, WritesIntoAPipeInsteadOfReplacingIt) {
  const std::string path = ::testing::TempDir() + "/pipe";
  ::unlink(path.c_str());
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  const int reader = ::open(path.c_str(), O_RDWR | O_NONBLOCK);
  ASSERT_GE(reader, 0);
  write_file(path, "text");
  char found[4] = {};
  EXPECT_EQ(::read(reader, found, 4), 4);
  EXPECT_EQ(std::string(found, 4), "text");
  ::close(reader);
  EXPECT_TRUE(std::filesystem::is_fifo(path));
}

TEST(WriteFile, RefusesAFolder) {
  try {
    write_file(::testing::TempDir(), "text");
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.rule(), "F03");
  }
}

}  // namespace
}  // namespace slotgraph
