// What probes share: small plans, values, and the questions about memory.
#ifndef PROBES_RIG_H_
#define PROBES_RIG_H_

#include <ATen/core/Tensor.h>

#include <functional>
#include <string>
#include <vector>

#include "core/graph/graph_callables.h"

namespace slotgraph::probes {

inline constexpr std::int64_t kHidden = 8;

// One layer and `frames` frames that are all live together, each with a colour of its own: rank 0
// of a pipeline of that many ranks.
Plan frames_in_flight_together(int frames, int variants = 1);
// One layer and `frames` frames of one colour: forward, backward, forward, backward, ...
Plan frames_one_after_another(int frames);

// [rows, kHidden] on the device; no two seeds give equal values.
at::Tensor values(std::int64_t rows, std::uint64_t seed);
at::Tensor leaf(std::int64_t rows, std::uint64_t seed);  // the same, requires grad

// A copy of what the tensor holds now. Synchronises.
std::string bytes_of(const at::Tensor& tensor);
bool same_bytes(const at::Tensor& a, const at::Tensor& b);
bool same_bytes(const Tensors& a, const Tensors& b);

// Whether the bytes that the two can touch meet: storages do not tell, since a frame's tensors have
// borrowed ones.
bool share_memory(const at::Tensor& a, const at::Tensor& b);
bool lies_in(const at::Tensor& tensor, const std::vector<Region>& regions);
// Bytes from the first element of `from` to that of `to`.
std::ptrdiff_t distance(const at::Tensor& from, const at::Tensor& to);

std::size_t allocated_bytes();  // of the caching allocator. Synchronises.

// What a call ends with: the id of the rule that refuses it, `accepted`, or `no rule: ...`.
std::string rule_of(const std::function<void()>& call);

}  // namespace slotgraph::probes

#endif  // PROBES_RIG_H_
