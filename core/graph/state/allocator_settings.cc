#include "core/graph/state/allocator_settings.h"

#include <c10/core/AllocatorConfig.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/util/env.h>

#include <algorithm>
#include <cctype>
#include <vector>

#include "core/fatal.h"
#include "core/memory/allocator_config.h"

namespace slotgraph {
namespace {

constexpr const char* kKey = "expandable_segments";

std::vector<std::string> parts_of(const std::string& settings) {
  std::vector<std::string> parts(1);
  int depth = 0;
  for (const char c : settings) {
    depth += c == '[' ? 1 : c == ']' ? -1 : 0;
    if (c == ',' && depth == 0) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

std::string key_of(const std::string& part) {
  std::string key = part.substr(0, part.find(':'));
  std::erase_if(key, [](unsigned char c) { return std::isspace(c) != 0; });
  return key;
}

}  // namespace

std::string without_expandable_segments(const std::string& settings) {
  std::string result;
  bool found = false;
  for (std::string part : parts_of(settings)) {
    if (key_of(part).empty()) continue;
    if (key_of(part) == kKey) {
      part = std::string(kKey) + ":False";
      found = true;
    }
    result += (result.empty() ? "" : ",") + part;
  }
  if (!found) result += (result.empty() ? "" : ",") + std::string(kKey) + ":False";
  return result;
}

bool expandable_segments_on() {
  return c10::CachingAllocator::AcceleratorAllocatorConfig::use_expandable_segments();
}

// isEnabled() knows nothing of the environment, which the allocator reads at its first use.
bool native_caching_on() {
  auto* const allocator = c10::cuda::CUDACachingAllocator::get();
  const auto set = [](const char* name) { return c10::utils::check_env(name).value_or(false); };
  return allocator->name() == "native" && allocator->isEnabled() &&
         !set("PYTORCH_NO_CUDA_MEMORY_CACHING") && !set("PYTORCH_NO_HIP_MEMORY_CACHING");
}

AllocatorSettingsGuard::AllocatorSettingsGuard() {
  if (!expandable_segments_on()) return;
  before_ = c10::CachingAllocator::getAllocatorSettings();
  changed_ = true;
  set_allocator_config(without_expandable_segments(before_));
}

AllocatorSettingsGuard::~AllocatorSettingsGuard() {
  if (!changed_) return;
  try {
    set_allocator_config(before_);
  } catch (const std::exception& error) {
    fatal("allocator settings cannot be restored to `" + before_ + "`: " + error.what());
  }
}

}  // namespace slotgraph
