// What the built-in blocks are written with.
#ifndef CORE_MODELS_BLOCK_H_
#define CORE_MODELS_BLOCK_H_

#include <torch/nn/module.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "core/models/blocks.h"
#include "core/models/values.h"

namespace slotgraph {

// Parameters by registration; their values come from the seed and their position.
class Block : public torch::nn::Module {
 public:
  Block(const BlockShape& shape, std::uint64_t seed) : shape_(shape), seed_(seed) {}

  at::Tensor weight(const std::string& name, std::int64_t out, std::int64_t in) {
    const double scale = 1.0 / std::sqrt(static_cast<double>(in));
    return register_parameter(name, values({out, in}, scale));
  }
  at::Tensor vector(const std::string& name, std::int64_t size) {
    return register_parameter(name, values({size}, 0.5));
  }
  at::Tensor buffer(const std::string& name, std::int64_t size) {
    return register_buffer(name, values({size}, 0.1));
  }

  std::int64_t hidden() const { return shape_.hidden; }

 private:
  at::Tensor values(at::IntArrayRef sizes, double scale) {
    return integer_values(sizes, shape_.dtype, mix({seed_, next_++}), scale).to(at::kCUDA);
  }
  BlockShape shape_;
  std::uint64_t seed_;
  std::uint64_t next_ = 0;
};

using Forward = std::function<Tensors(at::TensorList, const NamedTensors&)>;

// A kind whose `build` registers parameters and returns the forward function over them.
inline BlockKind kind(std::string name, std::function<Forward(Block&)> build,
                      std::vector<ExtraInput> extra = {}, bool hides_saves = false) {
  return {std::move(name),
          [build = std::move(build)](const BlockShape& shape, std::uint64_t seed) {
            auto block = std::make_shared<Block>(shape, seed);
            Forward forward = build(*block);
            return GraphModule{std::move(block), std::move(forward)};
          },
          std::move(extra), hides_saves};
}

}  // namespace slotgraph

#endif  // CORE_MODELS_BLOCK_H_
