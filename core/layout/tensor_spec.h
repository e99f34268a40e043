// Tensors as layouts see them: strided byte ranges of storages.
#ifndef CORE_LAYOUT_TENSOR_SPEC_H_
#define CORE_LAYOUT_TENSOR_SPEC_H_

#include <cstdint>
#include <vector>

namespace slotgraph {

struct ByteRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;  // past the last byte
  std::int64_t bytes() const { return end - begin; }
  bool contains(const ByteRange& other) const { return begin <= other.begin && other.end <= end; }
  bool overlaps(const ByteRange& other) const { return begin < other.end && other.begin < end; }
  bool operator==(const ByteRange&) const = default;
};

// A plain value. Numbers of storages, types and devices only say what is equal.
struct TensorSpec {
  int storage = 0;
  std::int64_t offset = 0;            // bytes from the storage's start to the first element
  std::vector<std::int64_t> sizes;    // elements
  std::vector<std::int64_t> strides;  // elements, not negative
  int item_bytes = 4;
  int dtype = 0;
  int device = 0;
  bool requires_grad = false;
  bool operator==(const TensorSpec&) const = default;
};

// Bytes from the first element to the end of the last; 0 for a tensor without elements.
std::int64_t span_bytes(const TensorSpec& tensor);
// Returns its place in its storage.
ByteRange range_of(const TensorSpec& tensor);

inline constexpr std::int64_t kPieceAlignment = 256;  // bytes, of every piece of an arena
inline std::int64_t align(std::int64_t bytes, std::int64_t unit = kPieceAlignment) {
  return (bytes + unit - 1) / unit * unit;
}

// Tensors of one storage that overlap, directly or through others; they keep their relative places.
struct Component {
  ByteRange range;             // in the storage; begins at a multiple of the alignment
  std::int64_t alignment = 1;  // largest item
  std::vector<int> members;    // indices of tensors, by begin, then end
};

// The components of tensors that share `group` numbers; those of one group have one storage.
// Touching ranges are separate. Tensors without bytes, and those with a negative group, are in
// none. They come in order of group, then place.
std::vector<Component> cluster(const std::vector<TensorSpec>& tensors,
                               const std::vector<int>& groups);

}  // namespace slotgraph

#endif  // CORE_LAYOUT_TENSOR_SPEC_H_
