#include "core/memory/allocator_config.h"

#include <c10/core/AllocatorConfig.h>

#include <functional>

namespace slotgraph {

// The variable as gcc names it, unique in the process: libc10_cuda.so sets it when it is loaded.
extern std::function<void(const std::string&)> cuda_config_hook __asm__(
    "_ZZN3c1016CachingAllocator26AcceleratorAllocatorConfig19getConfigParserHookB5cxx11EvE4hook");

void set_allocator_config(const std::string& text) {
  c10::CachingAllocator::AcceleratorAllocatorConfig::instance().parseArgs(text);
  if (cuda_config_hook) cuda_config_hook(text);
}

}  // namespace slotgraph
