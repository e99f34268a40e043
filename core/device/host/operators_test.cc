// The host device computes what the CPU computes, byte for byte; the table of exceptions says where
// and why not.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <set>

#include "core/device/host/cases.h"
#include "core/device/host/test_support.h"

namespace slotgraph::device {
namespace {

struct Operators : ::testing::Test {
  static void SetUpTestSuite() { initialise(); }
};

constexpr std::pair<unsigned, at::ScalarType> kTypes[] = {{kF32, at::kFloat},
                                                          {kF64, at::kDouble},
                                                          {kB16, at::kBFloat16},
                                                          {kI64, at::kLong},
                                                          {kBit, at::kBool}};

std::string operator_name(const std::string& name) { return name.substr(0, name.find(' ')); }

void compare(const OperatorCase& item, at::ScalarType type) {
  SCOPED_TRACE(item.name + " of " + at::toString(type));
  Tensors expected, found;
  const std::string cpu_error = error_of([&] { expected = item.call(Inputs(type, at::kCPU)); });
  ASSERT_EQ(cpu_error, "") << "the CPU itself refuses this case";
  const std::string error = error_of([&] { found = item.call(Inputs(type, at::kCUDA)); });
  ASSERT_EQ(error, "");
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    SCOPED_TRACE("output " + std::to_string(i));
    EXPECT_TRUE(found[i].is_cuda());
    EXPECT_EQ(found[i].dtype(), expected[i].dtype());
    EXPECT_EQ(found[i].sizes(), expected[i].sizes());
    EXPECT_EQ(found[i].strides(), expected[i].strides());
    EXPECT_TRUE(same_bytes(found[i], expected[i]))
        << found[i].to(at::kCPU).flatten().slice(0, 0, 8) << "\nexpected\n"
        << expected[i].flatten().slice(0, 0, 8);
  }
}

void compare_all(const std::vector<OperatorCase>& cases) {
  for (const OperatorCase& item : cases) {
    for (const auto& [bit, type] : kTypes) {
      if (item.types & bit) compare(item, type);
    }
  }
}

TEST_F(Operators, Pointwise) { compare_all(pointwise_cases()); }
TEST_F(Operators, Reductions) { compare_all(reduction_cases()); }
TEST_F(Operators, Indexing) { compare_all(indexing_cases()); }
TEST_F(Operators, Layout) { compare_all(layout_cases()); }
TEST_F(Operators, Algebra) { compare_all(algebra_cases()); }
TEST_F(Operators, Neural) { compare_all(neural_cases()); }
TEST_F(Operators, Gradients) { compare_all(gradient_cases()); }

// Composite kernels sum in another order than the CPU's own kernels. An entry whose values become
// equal belongs into the other tables.
TEST_F(Operators, ExceptionsAreRefusedOrDifferInTheLastBitsOnly) {
  for (const ExceptionCase& item : exception_cases()) {
    SCOPED_TRACE(std::string(item.name) + ": " + item.reason);
    const Tensors expected = item.call(Inputs(at::kFloat, at::kCPU));
    Tensors found;
    const std::string error = error_of([&] { found = item.call(Inputs(at::kFloat, at::kCUDA)); });
    if (item.error) {
      EXPECT_NE(error.find(item.error), std::string::npos) << error;
      continue;
    }
    ASSERT_EQ(error, "");
    ASSERT_EQ(found.size(), expected.size());
    bool equal = true;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      equal = equal && same_bytes(found[i], expected[i]);
      EXPECT_TRUE(at::allclose(found[i].to(at::kCPU), expected[i], 1e-4, 1e-5));
    }
    EXPECT_FALSE(equal) << "equal after all";
  }
}

TEST_F(Operators, AtLeast150OperatorsAreInTheTables) {
  std::set<std::string> operators;
  int calls = 0;
  for (const auto& cases : {pointwise_cases(), reduction_cases(), indexing_cases(), layout_cases(),
                            algebra_cases(), neural_cases(), gradient_cases()}) {
    for (const OperatorCase& item : cases) {
      operators.insert(operator_name(item.name));
      for (const auto& [bit, type] : kTypes) calls += (item.types & bit) != 0;
    }
  }
  std::printf("%zu operators in %d calls; %zu exceptions\n", operators.size(), calls,
              exception_cases().size());
  EXPECT_GE(operators.size(), 150u);
}

}  // namespace
}  // namespace slotgraph::device
