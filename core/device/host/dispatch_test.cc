// Which kernel serves each operator that has both a CPU kernel and a composite kernel. A composite
// kernel shadows the fallback, so that values may differ from the CPU's: a change of libtorch, or
// of the kernels here, must not pass unseen.
#include <ATen/core/dispatch/Dispatcher.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>

#include "core/device/device.h"

namespace slotgraph::device {
namespace {

constexpr const char* kGolden = "core/device/host/dispatch.golden";

// Composite kernels in the order in which the dispatcher prefers them.
constexpr std::pair<c10::DispatchKey, const char*> kComposites[] = {
    {c10::DispatchKey::CompositeExplicitAutogradNonFunctional,
     "CompositeExplicitAutogradNonFunctional"},
    {c10::DispatchKey::CompositeExplicitAutograd, "CompositeExplicitAutograd"},
    {c10::DispatchKey::CompositeImplicitAutograd, "CompositeImplicitAutograd"},
};

std::string server_of_line(const c10::OperatorHandle& operation, const std::string& line) {
  if (line.ends_with("[backend fallback]")) return "fallback";
  if (line.ends_with("[kernel]")) {
    const std::size_t slash = line.find_last_of('/');
    return "kernel in " + line.substr(slash + 1, line.find(':', slash) - slash - 1);
  }
  for (const auto& [key, name] : kComposites) {
    if (operation.hasKernelForDispatchKey(key)) return std::string("composite ") + name;
  }
  return "nothing";
}

// `kernel in fallback.cc`, `fallback`, `composite CompositeExplicitAutograd`, …, from the
// dispatcher's own account of its table: `CUDA: registered at FILE:LINE [KIND]`. Without a kernel
// for CUDA itself, a CompositeImplicitAutograd kernel already takes the call at AutogradCUDA.
std::string server(const c10::OperatorHandle& operation) {
  std::istringstream table(operation.dumpComputedTable());
  std::string answer = "nothing";
  for (std::string line; std::getline(table, line);) {
    if (line.starts_with("AutogradCUDA: ") && line.ends_with("[math kernel]"))
      return "composite CompositeImplicitAutograd";
    if (line.starts_with("CUDA: ")) answer = server_of_line(operation, line);
  }
  return answer;
}

std::set<std::string> found_lines() {
  std::set<std::string> lines;
  for (const c10::OperatorName& name : c10::Dispatcher::singleton().getAllOpNames()) {
    if (!name.name.starts_with("aten::")) continue;
    const auto operation = c10::Dispatcher::singleton().findSchema(name);
    if (!operation || !operation->hasKernelForDispatchKey(c10::DispatchKey::CPU)) continue;
    bool composite = false;
    for (const auto& [key, text] : kComposites)
      composite = composite || operation->hasKernelForDispatchKey(key);
    if (composite) lines.insert(toString(name) + ": " + server(*operation));
  }
  return lines;
}

std::set<std::string> golden_lines() {
  std::ifstream file(kGolden);
  std::set<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.insert(line);
  return lines;
}

TEST(Dispatch, OperatorsWithACompositeKernelAreServedAsRecorded) {
  initialise();
  const std::set<std::string> found = found_lines(), golden = golden_lines();
  if (const char* const path = std::getenv("SLOTGRAPH_WRITE_GOLDEN")) {
    std::ofstream file(path);
    for (const std::string& line : found) file << line << '\n';
  }
  std::string difference;
  for (const std::string& line : golden) {
    if (!found.contains(line)) difference += "- " + line + "\n";
  }
  for (const std::string& line : found) {
    if (!golden.contains(line)) difference += "+ " + line + "\n";
  }
  EXPECT_EQ(difference, "") << "If this is meant, write the file anew:\n  "
                               "SLOTGRAPH_WRITE_GOLDEN=$PWD/"
                            << kGolden << " bazel-bin/core/device/host/dispatch_test";
  EXPECT_GT(found.size(), 100u);
}

TEST(Dispatch, TheKernelOfTheCpuReplacesCompositesOfOtherValues) {
  for (const char* name : {"aten::native_layer_norm", "aten::native_layer_norm_backward",
                           "aten::silu_backward", "aten::mish_backward"}) {
    const auto operation = c10::Dispatcher::singleton().findSchemaOrThrow(name, "");
    EXPECT_EQ(server(operation), "kernel in fallback.cc") << name;
  }
}

}  // namespace
}  // namespace slotgraph::device
