// Random operators. Each reads (seed, offset) when it runs; value i of a tensor comes from number i
// of the draw, in the order of a contiguous tensor, whatever its strides.
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/PhiloxRNGEngine.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/from_blob.h>
#include <c10/cuda/CUDAGuard.h>
#include <torch/library.h>

#include <cmath>
#include <mutex>
#include <vector>

#include "core/device/host/generator.h"
#include "core/device/host/views.h"
#include "core/device/host/work.h"

namespace slotgraph::device::host {
namespace {

PhiloxDraw draw(const std::optional<at::Generator>& chosen, std::int64_t count) {
  const at::Generator& generator = chosen && chosen->defined() ? *chosen : default_generator(-1);
  HostGenerator& host = as_host(generator);
  const std::lock_guard lock(host.mutex_);
  return host.draw(count);
}

// `count` 32-bit numbers of the draw.
std::vector<std::uint32_t> numbers(const PhiloxDraw& draw, std::int64_t count) {
  const PhiloxCell state = draw.resolve();
  at::Philox4_32 engine(state.seed, 0, state.offset / 4);
  std::vector<std::uint32_t> result(static_cast<std::size_t>(count));
  for (std::uint32_t& number : result) number = engine();
  return result;
}

double uniform(std::uint32_t number) {
  return (number >> 8) * 0x1p-24;
}  // in [0, 1), exact in float

// Queues work that overwrites `self` with value(number i, number i ^ 1, i); a pair of numbers
// serves two values.
template <typename Value>
at::Tensor& fill(at::Tensor& self, const std::optional<at::Generator>& generator, const char* name,
                 Value value) {
  if (self.numel() == 0) return self;
  const c10::OptionalDeviceGuard guard(self.device());
  const std::int64_t count = self.numel();
  const std::int64_t padded = (count + 3) / 4 * 4;
  submit_function(
      [view = host_view(self, name), state = draw(generator, count), count, padded, value] {
        const at::AutoDispatchBelowADInplaceOrView below;
        const std::vector<std::uint32_t> random = numbers(state, padded);
        const at::Tensor values = at::empty({count}, at::kDouble);
        auto* const out = values.data_ptr<double>();
        for (std::int64_t i = 0; i < count; ++i) out[i] = value(random[i], random[i ^ 1], i);
        view.copy_(values.view(view.sizes()));
      });
  return self;
}

at::Tensor& uniform_(at::Tensor& self, double from, double to,
                     std::optional<at::Generator> generator) {
  return fill(self, generator, "uniform_", [=](std::uint32_t number, std::uint32_t, std::int64_t) {
    return from + (to - from) * uniform(number);
  });
}

// Box-Muller on pairs of numbers: the even value takes the cosine, the odd one the sine.
at::Tensor& normal_(at::Tensor& self, double mean, double deviation,
                    std::optional<at::Generator> generator) {
  TORCH_CHECK(deviation >= 0, "normal expects std >= 0.0, but found std ", deviation);
  return fill(self, generator, "normal_",
              [=](std::uint32_t own, std::uint32_t other, std::int64_t i) {
                const double first = 1.0 - uniform(i % 2 == 0 ? own : other);
                const double angle = 2 * M_PI * uniform(i % 2 == 0 ? other : own);
                const double radius = std::sqrt(-2.0 * std::log(first));
                return mean + deviation * radius * (i % 2 == 0 ? std::cos(angle) : std::sin(angle));
              });
}

at::Tensor& bernoulli_float(at::Tensor& self, double probability,
                            std::optional<at::Generator> generator) {
  TORCH_CHECK(0 <= probability && probability <= 1,
              "bernoulli_ expects p to be in [0, 1], but got p=", probability);
  return fill(self, generator, "bernoulli_",
              [=](std::uint32_t number, std::uint32_t, std::int64_t) {
                return uniform(number) < probability ? 1.0 : 0.0;
              });
}

at::Tensor& bernoulli_tensor(at::Tensor& self, const at::Tensor& probability,
                             std::optional<at::Generator> generator) {
  if (self.numel() == 0) return self;
  const c10::OptionalDeviceGuard guard(self.device());
  submit_function([view = host_view(self, "bernoulli_"),
                   chance = host_view(probability, "bernoulli_"),
                   state = draw(generator, self.numel())] {
    const at::AutoDispatchBelowADInplaceOrView below;
    const std::vector<std::uint32_t> random = numbers(state, view.numel());
    at::Tensor values = chance.expand_as(view).to(at::kDouble).clone(at::MemoryFormat::Contiguous);
    auto* const out = values.data_ptr<double>();
    for (std::int64_t i = 0; i < view.numel(); ++i)
      out[i] = uniform(random[i]) < out[i] ? 1.0 : 0.0;
    view.copy_(values);
  });
  return self;
}

at::Tensor& bernoulli_out(const at::Tensor& self, std::optional<at::Generator> generator,
                          at::Tensor& out) {
  out.resize_(self.sizes());
  return bernoulli_tensor(out, self, generator);
}

// One more than the largest number of random_() without an end: the integers that the type holds
// exactly, as far as the 32 bits that serve a value reach.
std::int64_t end_of(at::ScalarType type) {
  switch (type) {
    case at::kBool:
      return 2;
    case at::kByte:
      return 1 << 8;
    case at::kChar:
      return 1 << 7;
    case at::kShort:
      return 1 << 15;
    case at::kInt:
      return std::int64_t{1} << 31;
    case at::kBFloat16:
      return (1 << 8) + 1;
    case at::kFloat:
      return (1 << 24) + 1;
    default:
      return std::int64_t{1} << 32;
  }
}

at::Tensor& random_from_to(at::Tensor& self, std::int64_t from, std::optional<std::int64_t> to,
                           std::optional<at::Generator> generator) {
  const std::int64_t end = to.value_or(end_of(self.scalar_type()));
  TORCH_CHECK(from < end, "random_ expects 'from' to be less than 'to', but got from=", from,
              " >= to=", end);
  const auto range = static_cast<std::uint64_t>(end) - static_cast<std::uint64_t>(from);
  TORCH_CHECK(range <= std::uint64_t{1} << 32,
              "random_ on the host device draws from at most 2^32 integers, but got from=", from,
              ", to=", end);
  return fill(self, generator, "random_", [=](std::uint32_t number, std::uint32_t, std::int64_t) {
    return static_cast<double>(from + static_cast<std::int64_t>(number % range));
  });
}

at::Tensor& random_to(at::Tensor& self, std::int64_t to, std::optional<at::Generator> generator) {
  return random_from_to(self, 0, to, std::move(generator));
}

at::Tensor& random_any(at::Tensor& self, std::optional<at::Generator> generator) {
  return random_from_to(self, 0, end_of(self.scalar_type()), std::move(generator));
}

at::Tensor& exponential_(at::Tensor& self, double lambda, std::optional<at::Generator> generator) {
  TORCH_CHECK(lambda > 0, "exponential_ expects lambda > 0.0, but found lambda=", lambda);
  return fill(self, generator, "exponential_",
              [=](std::uint32_t number, std::uint32_t, std::int64_t) {
                return -std::log(1.0 - uniform(number)) / lambda;
              });
}

std::tuple<at::Tensor, at::Tensor> native_dropout(const at::Tensor& input, double probability,
                                                  std::optional<bool> train) {
  const c10::OptionalDeviceGuard guard(input.device());
  at::Tensor output = at::empty_like(input);
  at::Tensor mask = at::empty_like(input, input.options().dtype(at::kBool));
  if (input.numel() == 0) return {output, mask};
  const bool drop = train.value_or(true);
  const double keep = drop ? 1.0 - probability : 1.0;
  submit_function([in = host_view(input, "native_dropout"),
                   out = host_view(output, "native_dropout"),
                   kept = host_view(mask, "native_dropout"), keep, drop,
                   state = drop ? draw(std::nullopt, input.numel()) : PhiloxDraw{}] {
    const at::AutoDispatchBelowADInplaceOrView below;
    const at::Tensor values = at::empty(in.sizes(), at::kBool);
    auto* const flags = values.data_ptr<bool>();
    const std::vector<std::uint32_t> random =
        drop ? numbers(state, in.numel()) : std::vector<std::uint32_t>();
    for (std::int64_t i = 0; i < in.numel(); ++i) flags[i] = !drop || uniform(random[i]) < keep;
    kept.copy_(values);
    out.copy_(in.mul(kept).mul(keep == 0 ? 0.0 : 1.0 / keep));
  });
  return {output, mask};
}

TORCH_LIBRARY_IMPL(aten, CUDA, library) {
  library.impl("uniform_", uniform_);
  library.impl("normal_", normal_);
  library.impl("bernoulli_.float", bernoulli_float);
  library.impl("bernoulli_.Tensor", bernoulli_tensor);
  library.impl("bernoulli.out", bernoulli_out);
  library.impl("random_.from", random_from_to);
  library.impl("random_.to", random_to);
  library.impl("random_", random_any);
  library.impl("exponential_", exponential_);
  library.impl("native_dropout", native_dropout);
}

}  // namespace
}  // namespace slotgraph::device::host
