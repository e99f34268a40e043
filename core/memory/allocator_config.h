// Settings of libtorch's allocators, as PYTORCH_CUDA_ALLOC_CONF has them.
#ifndef CORE_MEMORY_ALLOCATOR_CONFIG_H_
#define CORE_MEMORY_ALLOCATOR_CONFIG_H_

#include <string>

namespace slotgraph {

// What c10::CachingAllocator::setAllocatorSettings does, for every compiler: that function is
// inline and reaches the CUDA allocator's own settings (the hook) through a static variable whose
// name clang and gcc, which built the wheel, mangle differently. Throws c10::Error for an unknown
// setting.
void set_allocator_config(const std::string& text);

}  // namespace slotgraph

#endif  // CORE_MEMORY_ALLOCATOR_CONFIG_H_
