#include "core/program.h"

#include <gtest/gtest.h>

#include <map>

namespace slotgraph {
namespace {

Error::Kind thrown;

int throws(int, char**) { throw Error(thrown, {"X01", "place", "this", "that", "do"}); }

int code_of(Error::Kind kind) {
  thrown = kind;
  ::testing::internal::CaptureStderr();
  const int code = run_program("name", 0, nullptr, throws);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(),
            "name: [X01] place: found this, expected that; do\n");
  return code;
}

TEST(RunProgram, EndsWithTheCodeOfTheErrorsKind) {
  const std::map<Error::Kind, int> codes{{Error::kInput, 64},
                                         {Error::kFile, 74},
                                         {Error::kContract, 70},
                                         {Error::kNoDevice, 2},
                                         {Error::kInternal, 70}};
  for (const auto& [kind, code] : codes) {
    EXPECT_EQ(code_of(kind), code);
    EXPECT_EQ(exit_code_of(kind), code);
  }
}

TEST(RunProgram, ReturnsWhatTheProgramReturnsAndExplainsOtherExceptions) {
  EXPECT_EQ(run_program("name", 0, nullptr, [](int, char**) { return 3; }), 3);
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(
      run_program("name", 0, nullptr, [](int, char**) -> int { throw std::runtime_error("odd"); }),
      70);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "name: internal error: odd\n");
}

}  // namespace
}  // namespace slotgraph
