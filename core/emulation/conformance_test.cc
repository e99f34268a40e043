// Memory, copies and errors as on the real runtime.
#include <string>

#include "core/emulation/conformance_testing.h"

namespace slotgraph::emulation {
namespace {

constexpr std::size_t kBytes = 4096;

class MemoryTest : public ConformanceTest {};
class CopyTest : public ConformanceTest {};
class ErrorTest : public ConformanceTest {};
class DeviceTest : public ConformanceTest {};

TEST_F(MemoryTest, NoBytesGiveNull) {
  void* device = this;
  void* pinned = this;
  EXPECT_OK(cudaMalloc(&device, 0));
  EXPECT_OK(cudaHostAlloc(&pinned, 0, 0));
  EXPECT_EQ(device, nullptr);
  EXPECT_EQ(pinned, nullptr);
  EXPECT_OK(cudaFree(nullptr));
  EXPECT_OK(cudaFreeHost(nullptr));
}

TEST_F(MemoryTest, MoreThanAnyDeviceHasIsOutOfMemory) {
  void* pointer = nullptr;
  EXPECT_EQ(cudaMalloc(&pointer, std::size_t{1} << 60), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaGetLastError(), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaMalloc(nullptr, 1), cudaErrorInvalidValue);
}

TEST_F(MemoryTest, FreeRefusesWhatItDidNotAllocate) {
  const Buffer device(kBytes);
  const Pinned<int> pinned;
  int pageable = 0;
  EXPECT_EQ(cudaFree(device.get() + 8), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFree(pinned.get()), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFree(&pageable), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFreeHost(&pageable), cudaErrorInvalidValue);
}

TEST_F(MemoryTest, AllocationsAreAlignedAndDisjoint) {
  const Buffer first(1), second(1);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(first.get()) % 256, 0u);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(second.get()) % 256, 0u);
  EXPECT_NE(first.get(), second.get());
}

TEST_F(MemoryTest, PinnedMemoryIsForTheHost) {
  void* pointer = nullptr;
  ASSERT_OK(cudaMallocHost(&pointer, kBytes));
  std::memset(pointer, 1, kBytes);
  EXPECT_OK(cudaFreeHost(pointer));
  EXPECT_EQ(cudaHostAlloc(&pointer, kBytes, 64), cudaErrorInvalidValue);
}

TEST_F(MemoryTest, AttributesTellDevicePinnedAndPageableMemory) {
  const Buffer device(kBytes);
  const Pinned<char> pinned(kBytes);
  char pageable = 0;
  cudaPointerAttributes found;
  for (int offset : {0, 100}) {
    ASSERT_OK(cudaPointerGetAttributes(&found, device.get() + offset));
    EXPECT_EQ(found.type, cudaMemoryTypeDevice);
    EXPECT_EQ(found.device, 0);
    EXPECT_EQ(found.devicePointer, device.get() + offset);
    EXPECT_EQ(found.hostPointer, nullptr);
    ASSERT_OK(cudaPointerGetAttributes(&found, pinned.get() + offset));
    EXPECT_EQ(found.type, cudaMemoryTypeHost);
    EXPECT_EQ(found.hostPointer, pinned.get() + offset);
  }
  for (void* pointer : {static_cast<void*>(&pageable), static_cast<void*>(nullptr)}) {
    ASSERT_OK(cudaPointerGetAttributes(&found, pointer));
    EXPECT_EQ(found.type, cudaMemoryTypeUnregistered);
    EXPECT_EQ(found.devicePointer, nullptr);
    EXPECT_EQ(found.hostPointer, pointer);
  }
}

TEST_F(MemoryTest, InfoHasNoMoreFreeThanInAll) {
  std::size_t free = 0, total = 0;
  ASSERT_OK(cudaMemGetInfo(&free, &total));
  EXPECT_GT(total, 0u);
  EXPECT_LE(free, total);
}

TEST_F(CopyTest, BytesTravelThereAndBack) {
  const Buffer first(kBytes), second(kBytes);
  std::vector<std::uint8_t> source(kBytes), target(kBytes);
  for (std::size_t i = 0; i < kBytes; ++i) source[i] = static_cast<std::uint8_t>(i * 7);
  EXPECT_OK(cudaMemcpy(first.get(), source.data(), kBytes, cudaMemcpyHostToDevice));
  EXPECT_OK(cudaMemcpy(second.get(), first.get(), kBytes, cudaMemcpyDeviceToDevice));
  EXPECT_OK(cudaMemcpy(target.data(), second.get(), kBytes, cudaMemcpyDeviceToHost));
  EXPECT_EQ(target, source);
  EXPECT_OK(cudaMemset(second.get(), 9, 2));
  EXPECT_OK(cudaMemcpy(target.data(), second.get(), kBytes, cudaMemcpyDefault));
  EXPECT_EQ(target[1], 9);
  EXPECT_EQ(target[2], source[2]);
}

TEST_F(CopyTest, PageableSourceIsReadAtTheCall) {
  const Stream stream;
  const Buffer device(kBytes);
  std::uint8_t pageable[16] = {3};
  std::uint8_t found = 0;
  EXPECT_OK(cudaMemcpyAsync(device.get(), pageable, 16, cudaMemcpyHostToDevice, stream));
  pageable[0] = 4;
  EXPECT_OK(cudaMemcpyAsync(&found, device.get(), 1, cudaMemcpyDeviceToHost, stream));
  EXPECT_EQ(found, 3);  // a copy to pageable memory returns when it is done
}

TEST_F(CopyTest, PinnedSourceIsReadWhenTheCopyRuns) {
  const Stream stream;
  const Buffer device(kBytes);
  const Pinned<std::uint8_t> pinned(2);
  Gate gate;
  gate.close(stream);
  pinned[0] = 3;
  EXPECT_OK(cudaMemcpyAsync(device.get(), &pinned[0], 1, cudaMemcpyHostToDevice, stream));
  EXPECT_OK(cudaMemcpyAsync(&pinned[1], device.get(), 1, cudaMemcpyDeviceToHost, stream));
  pinned[0] = 4;
  EXPECT_EQ(pinned[1], 0);
  gate.open();
  EXPECT_OK(cudaStreamSynchronize(stream));
  EXPECT_EQ(pinned[1], 4);
}

TEST_F(CopyTest, BlockingCopyComesAfterBlockingStreams) {
  const Stream blocking(cudaStreamDefault);
  const Buffer device(kBytes);
  std::uint8_t found[2] = {};
  EXPECT_OK(cudaMemsetAsync(device.get(), 1, 2, nullptr));
  EXPECT_OK(cudaMemsetAsync(device.get(), 2, 1, blocking));
  EXPECT_OK(cudaMemcpy(found, device.get(), 2, cudaMemcpyDeviceToHost));
  EXPECT_EQ(found[0], 2);
  EXPECT_EQ(found[1], 1);
}

TEST_F(CopyTest, OutsideOfAnAllocationIsRefused) {
  const Buffer device(kBytes);
  const std::size_t large = std::size_t{1} << 25;
  const Pinned<char> pinned(large);
  EXPECT_EQ(cudaMemcpy(device.get(), pinned.get(), large, cudaMemcpyHostToDevice),
            cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemset(device.get(), 1, large), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy(nullptr, pinned.get(), 1, cudaMemcpyDefault), cudaErrorInvalidValue);
}

TEST_F(CopyTest, NothingToDoSucceeds) {
  EXPECT_OK(cudaMemcpy(nullptr, nullptr, 0, cudaMemcpyDefault));
  EXPECT_OK(cudaMemset(nullptr, 1, 0));
}

TEST_F(CopyTest, UnknownDirectionIsRefused) {
  const Buffer device(kBytes);
  const Pinned<char> pinned;
  EXPECT_EQ(cudaMemcpy(device.get(), pinned.get(), 1, static_cast<cudaMemcpyKind>(9)),
            cudaErrorInvalidMemcpyDirection);
}

TEST_F(CopyTest, MemsetTakesDeviceAndPinnedMemoryOnly) {
  const Pinned<std::uint8_t> pinned;
  std::uint8_t pageable = 0;
  EXPECT_OK(cudaMemset(pinned.get(), 5, 1));
  EXPECT_OK(cudaDeviceSynchronize());
  EXPECT_EQ(pinned[0], 5);
  EXPECT_EQ(cudaMemset(&pageable, 5, 1), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemset(nullptr, 5, 1), cudaErrorInvalidValue);
}

TEST_F(ErrorTest, GetClearsAndPeekDoesNot) {
  EXPECT_EQ(cudaMalloc(nullptr, 1), cudaErrorInvalidValue);
  EXPECT_EQ(cudaPeekAtLastError(), cudaErrorInvalidValue);
  EXPECT_EQ(cudaPeekAtLastError(), cudaErrorInvalidValue);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidValue);
  EXPECT_OK(cudaGetLastError());
  EXPECT_OK(cudaPeekAtLastError());
}

TEST_F(ErrorTest, SuccessKeepsTheLastErrorAndTheNewestErrorWins) {
  int device = 0;
  EXPECT_EQ(cudaMalloc(nullptr, 1), cudaErrorInvalidValue);
  EXPECT_OK(cudaGetDevice(&device));
  EXPECT_EQ(cudaSetDevice(-1), cudaErrorInvalidDevice);
  EXPECT_OK(cudaGetDevice(&device));
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidDevice);
}

TEST_F(ErrorTest, EachThreadHasItsOwn) {
  EXPECT_EQ(cudaMalloc(nullptr, 1), cudaErrorInvalidValue);
  std::thread([] { EXPECT_OK(cudaPeekAtLastError()); }).join();
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidValue);
}

TEST_F(ErrorTest, NotReadyIsNoError) {
  const Stream stream;
  Gate gate;
  gate.close(stream);
  EXPECT_EQ(cudaStreamQuery(stream), cudaErrorNotReady);
  EXPECT_OK(cudaGetLastError());
  gate.open();
  EXPECT_OK(cudaStreamSynchronize(stream));
}

TEST_F(ErrorTest, HaveNamesAndTexts) {
  EXPECT_EQ(std::string(cudaGetErrorName(cudaSuccess)), "cudaSuccess");
  EXPECT_EQ(std::string(cudaGetErrorName(cudaErrorMemoryAllocation)), "cudaErrorMemoryAllocation");
  EXPECT_EQ(std::string(cudaGetErrorString(cudaErrorMemoryAllocation)), "out of memory");
  EXPECT_EQ(std::string(cudaGetErrorString(cudaErrorStreamCaptureUnsupported)),
            "operation not permitted when stream is capturing");
}

TEST_F(DeviceTest, UnknownOrdinalsAreRefused) {
  EXPECT_EQ(cudaSetDevice(-1), cudaErrorInvalidDevice);
  EXPECT_EQ(cudaSetDevice(99), cudaErrorInvalidDevice);
  EXPECT_EQ(cudaGetDevice(nullptr), cudaErrorInvalidValue);
  EXPECT_EQ(cudaGetDeviceCount(nullptr), cudaErrorInvalidValue);
  int device = -1;
  EXPECT_OK(cudaGetDevice(&device));
  EXPECT_EQ(device, 0);
}

TEST_F(DeviceTest, PropertiesAgreeWithAttributesAndMemoryInfo) {
  cudaDeviceProp properties;
  int major = 0, processors = 0;
  std::size_t free = 0, total = 0;
  ASSERT_OK(cudaGetDeviceProperties(&properties, 0));
  ASSERT_OK(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0));
  ASSERT_OK(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, 0));
  ASSERT_OK(cudaMemGetInfo(&free, &total));
  EXPECT_EQ(properties.major, major);
  EXPECT_EQ(properties.multiProcessorCount, processors);
  EXPECT_EQ(properties.warpSize, 32);
  EXPECT_EQ(properties.totalGlobalMem, total);
}

TEST_F(DeviceTest, VersionsAndPriorities) {
  int driver = 0, runtime = 0, least = -1, greatest = 1;
  ASSERT_OK(cudaDriverGetVersion(&driver));
  ASSERT_OK(cudaRuntimeGetVersion(&runtime));
  EXPECT_GE(driver, runtime);
  EXPECT_GE(runtime, 13000);
  ASSERT_OK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  EXPECT_GE(least, greatest);  // lower numbers are greater priorities
}

}  // namespace
}  // namespace slotgraph::emulation
