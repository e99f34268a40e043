// Calls of operators for the comparison of the host device with the CPU.
#ifndef CORE_DEVICE_HOST_CASES_H_
#define CORE_DEVICE_HOST_CASES_H_

#include <ATen/core/Tensor.h>

#include <functional>
#include <string>
#include <vector>

namespace slotgraph::device {

using Tensors = std::vector<at::Tensor>;

// Arguments of one element type on one device; the same values on every device.
struct Inputs {
  Inputs(at::ScalarType type, at::Device device);

  at::Tensor x, y, z;     // [6, 8]
  at::Tensor positive;    // [6, 8], at least 0.5; integers at least 1
  at::Tensor unit;        // [6, 8], in (0, 1); integers 0 or 1
  at::Tensor transposed;  // [6, 8], strides {1, 6}
  at::Tensor row;         // [8]
  at::Tensor column;      // [6, 1]
  at::Tensor square;      // [8, 8], well conditioned
  at::Tensor batch;       // [3, 4, 8]
  at::Tensor factors;     // [3, 8, 5]
  at::Tensor image;       // [2, 4, 8, 8]
  at::Tensor scalar;      // 0 dimensions, on the device
  at::Tensor rows;        // int64 [4], in [0, 6), without repetition
  at::Tensor classes;     // int64 [6], in [0, 8)
  at::Tensor places;      // int64 [6, 8], each row a permutation of 0..7
  at::Tensor mask;        // bool [6, 8]
};

enum ElementTypes : unsigned {
  kF32 = 1,
  kF64 = 2,
  kB16 = 4,
  kI64 = 8,
  kBit = 16,
  kPrecise = kF32 | kF64,
  kFloating = kF32 | kF64 | kB16,
  kNumbers = kFloating | kI64,
  kIntegers = kI64 | kBit,
  kEvery = kNumbers | kBit,
};

struct OperatorCase {
  std::string name;  // of the operator, without namespace; a remark after a space
  unsigned types;
  std::function<Tensors(const Inputs&)> call;
};

// An operator whose values differ from those of the CPU, or that the device refuses.
struct ExceptionCase {
  const char* name;
  std::function<Tensors(const Inputs&)> call;  // fp32
  const char* reason;
  const char* error;  // what the message of a refusal contains; null: values differ
};

// The value of `function` and its gradients with respect to copies of `inputs`.
Tensors with_gradients(const Tensors& inputs,
                       const std::function<at::Tensor(const Tensors&)>& function);

std::vector<OperatorCase> pointwise_cases();
std::vector<OperatorCase> reduction_cases();
std::vector<OperatorCase> indexing_cases();
std::vector<OperatorCase> layout_cases();
std::vector<OperatorCase> algebra_cases();
std::vector<OperatorCase> neural_cases();
std::vector<OperatorCase> gradient_cases();
std::vector<ExceptionCase> exception_cases();

}  // namespace slotgraph::device

#endif  // CORE_DEVICE_HOST_CASES_H_
