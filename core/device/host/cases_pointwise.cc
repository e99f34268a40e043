// Pointwise operators: unary, binary, comparisons, in place and into given outputs.
#include <ATen/ATen.h>

#include "core/device/host/cases.h"

namespace slotgraph::device {
namespace {

using In = const Inputs&;
using Out = Tensors;

std::vector<OperatorCase> unary() {
  return {
      {"abs", kNumbers, [](In in) { return Out{at::abs(in.x)}; }},
      {"neg", kNumbers, [](In in) { return Out{at::neg(in.x)}; }},
      {"sign", kEvery, [](In in) { return Out{at::sign(in.x)}; }},
      {"exp", kNumbers, [](In in) { return Out{at::exp(in.x)}; }},
      {"exp2", kFloating, [](In in) { return Out{at::exp2(in.x)}; }},
      {"expm1", kFloating, [](In in) { return Out{at::expm1(in.x)}; }},
      {"log", kNumbers, [](In in) { return Out{at::log(in.positive)}; }},
      {"log2", kFloating, [](In in) { return Out{at::log2(in.positive)}; }},
      {"log10", kFloating, [](In in) { return Out{at::log10(in.positive)}; }},
      {"log1p", kFloating, [](In in) { return Out{at::log1p(in.positive)}; }},
      {"sqrt", kNumbers, [](In in) { return Out{at::sqrt(in.positive)}; }},
      {"sqrt (of negative values)", kPrecise, [](In in) { return Out{at::sqrt(in.x)}; }},
      {"rsqrt", kFloating, [](In in) { return Out{at::rsqrt(in.positive)}; }},
      {"square", kNumbers, [](In in) { return Out{at::square(in.x)}; }},
      {"reciprocal", kFloating, [](In in) { return Out{at::reciprocal(in.positive)}; }},
      {"sin", kFloating, [](In in) { return Out{at::sin(in.x)}; }},
      {"cos", kFloating, [](In in) { return Out{at::cos(in.x)}; }},
      {"tan", kFloating, [](In in) { return Out{at::tan(in.x)}; }},
      {"asin", kFloating, [](In in) { return Out{at::asin(in.x)}; }},
      {"acos", kFloating, [](In in) { return Out{at::acos(in.x)}; }},
      {"atan", kFloating, [](In in) { return Out{at::atan(in.x)}; }},
      {"sinh", kFloating, [](In in) { return Out{at::sinh(in.x)}; }},
      {"cosh", kFloating, [](In in) { return Out{at::cosh(in.x)}; }},
      {"tanh", kFloating, [](In in) { return Out{at::tanh(in.x)}; }},
      {"atanh", kFloating, [](In in) { return Out{at::atanh(in.x)}; }},
      {"asinh", kFloating, [](In in) { return Out{at::asinh(in.x)}; }},
      {"acosh", kPrecise, [](In in) { return Out{at::acosh(in.positive + 1)}; }},
      {"erf", kFloating, [](In in) { return Out{at::erf(in.x)}; }},
      {"erfc", kFloating, [](In in) { return Out{at::erfc(in.x)}; }},
      {"erfinv", kFloating, [](In in) { return Out{at::erfinv(in.x)}; }},
      {"lgamma", kPrecise, [](In in) { return Out{at::lgamma(in.positive)}; }},
      {"digamma", kPrecise, [](In in) { return Out{at::digamma(in.positive)}; }},
      {"sinc", kPrecise, [](In in) { return Out{at::sinc(in.x)}; }},
      {"i0", kPrecise, [](In in) { return Out{at::i0(in.x)}; }},
      {"sigmoid", kNumbers, [](In in) { return Out{at::sigmoid(in.x)}; }},
      {"logit", kFloating, [](In in) { return Out{at::logit(in.unit, 1e-6)}; }},
      {"floor", kFloating, [](In in) { return Out{at::floor(in.x * 3)}; }},
      {"ceil", kFloating, [](In in) { return Out{at::ceil(in.x * 3)}; }},
      {"round", kFloating, [](In in) { return Out{at::round(in.x * 3)}; }},
      {"trunc", kFloating, [](In in) { return Out{at::trunc(in.x * 3)}; }},
      {"frac", kFloating, [](In in) { return Out{at::frac(in.x * 3)}; }},
      {"isnan", kEvery, [](In in) { return Out{at::isnan(in.x)}; }},
      {"isinf", kFloating, [](In in) { return Out{at::isinf(in.x / 0)}; }},
      {"isfinite", kFloating, [](In in) { return Out{at::isfinite(in.x / 0)}; }},
      {"nan_to_num", kFloating, [](In in) { return Out{at::nan_to_num(in.x / 0)}; }},
      {"signbit", kNumbers, [](In in) { return Out{at::signbit(in.x)}; }},
      {"logical_not", kEvery, [](In in) { return Out{at::logical_not(in.x)}; }},
      {"bitwise_not", kIntegers, [](In in) { return Out{at::bitwise_not(in.x)}; }},
      {"frexp", kPrecise,
       [](In in) {
         const auto [mantissa, exponent] = at::frexp(in.x);
         return Out{mantissa, exponent};
       }},
      {"clamp", kNumbers, [](In in) { return Out{at::clamp(in.x, -0.5, 0.5)}; }},
      {"clamp.Tensor", kNumbers, [](In in) { return Out{at::clamp(in.x, in.y, in.positive)}; }},
      {"clamp_min", kNumbers, [](In in) { return Out{at::clamp_min(in.x, 0)}; }},
      {"clamp_max", kNumbers, [](In in) { return Out{at::clamp_max(in.x, 0)}; }},
      {"relu (expanded)", kNumbers,
       [](In in) {
         return Out{at::relu(in.row.expand({4, 8}))};
       }},
      {"abs (transposed)", kNumbers, [](In in) { return Out{at::abs(in.transposed)}; }},
  };
}

std::vector<OperatorCase> binary() {
  return {
      {"add.Tensor", kEvery, [](In in) { return Out{at::add(in.x, in.y)}; }},
      {"add.Tensor (alpha)", kNumbers, [](In in) { return Out{at::add(in.x, in.y, 2)}; }},
      {"add.Scalar", kNumbers, [](In in) { return Out{at::add(in.x, 3)}; }},
      {"add.Tensor (broadcast)", kEvery, [](In in) { return Out{in.column + in.row}; }},
      {"add.Tensor (promoted)", kNumbers, [](In in) { return Out{in.x + in.mask}; }},
      {"add.Tensor (0 dimensions)", kNumbers, [](In in) { return Out{in.x + in.scalar}; }},
      {"sub.Tensor", kNumbers, [](In in) { return Out{at::sub(in.x, in.transposed)}; }},
      {"rsub.Scalar", kNumbers, [](In in) { return Out{at::rsub(in.x, 2)}; }},
      {"mul.Tensor", kEvery, [](In in) { return Out{at::mul(in.x, in.row)}; }},
      {"div.Tensor", kNumbers, [](In in) { return Out{at::div(in.x, in.positive)}; }},
      {"div.Tensor_mode", kNumbers,
       [](In in) {
         return Out{at::div(in.x, in.positive, "floor"), at::div(in.x, in.positive, "trunc")};
       }},
      {"floor_divide", kNumbers, [](In in) { return Out{at::floor_divide(in.x, in.positive)}; }},
      {"remainder.Tensor", kNumbers, [](In in) { return Out{at::remainder(in.x, in.positive)}; }},
      {"fmod.Tensor", kNumbers, [](In in) { return Out{at::fmod(in.x, in.positive)}; }},
      {"pow.Tensor_Tensor", kFloating, [](In in) { return Out{at::pow(in.positive, in.y)}; }},
      {"pow.Tensor_Scalar", kNumbers,
       [](In in) {
         return Out{at::pow(in.x, 2), at::pow(in.x, 3)};
       }},
      {"pow.Scalar", kFloating, [](In in) { return Out{at::pow(2, in.x)}; }},
      {"atan2", kFloating, [](In in) { return Out{at::atan2(in.x, in.y)}; }},
      {"hypot", kFloating, [](In in) { return Out{at::hypot(in.x, in.y)}; }},
      {"copysign.Tensor", kFloating, [](In in) { return Out{at::copysign(in.x, in.y)}; }},
      {"nextafter", kPrecise, [](In in) { return Out{at::nextafter(in.x, in.y)}; }},
      {"maximum", kEvery, [](In in) { return Out{at::maximum(in.x, in.y)}; }},
      {"minimum", kEvery, [](In in) { return Out{at::minimum(in.x, in.y)}; }},
      {"fmax", kNumbers, [](In in) { return Out{at::fmax(in.x, in.y)}; }},
      {"fmin", kNumbers, [](In in) { return Out{at::fmin(in.x, in.y)}; }},
      {"logaddexp", kPrecise, [](In in) { return Out{at::logaddexp(in.x, in.y)}; }},
      {"xlogy.Tensor", kPrecise, [](In in) { return Out{at::xlogy(in.x, in.positive)}; }},
      {"heaviside", kPrecise, [](In in) { return Out{at::heaviside(in.x, in.y)}; }},
      {"gcd", kI64, [](In in) { return Out{at::gcd(in.x, in.y)}; }},
      {"lcm", kI64, [](In in) { return Out{at::lcm(in.x, in.y)}; }},
      {"eq.Tensor", kEvery, [](In in) { return Out{at::eq(in.x, in.y)}; }},
      {"ne.Tensor", kEvery, [](In in) { return Out{at::ne(in.x, in.y)}; }},
      {"lt.Tensor", kEvery, [](In in) { return Out{at::lt(in.x, in.y)}; }},
      {"le.Tensor", kEvery, [](In in) { return Out{at::le(in.x, in.y)}; }},
      {"gt.Scalar", kEvery, [](In in) { return Out{at::gt(in.x, 0)}; }},
      {"ge.Tensor", kEvery, [](In in) { return Out{at::ge(in.x, in.transposed)}; }},
      {"logical_and", kEvery, [](In in) { return Out{at::logical_and(in.x, in.y)}; }},
      {"logical_or", kEvery, [](In in) { return Out{at::logical_or(in.x, in.y)}; }},
      {"logical_xor", kEvery, [](In in) { return Out{at::logical_xor(in.x, in.y)}; }},
      {"bitwise_and.Tensor", kIntegers, [](In in) { return Out{at::bitwise_and(in.x, in.y)}; }},
      {"bitwise_or.Tensor", kIntegers, [](In in) { return Out{at::bitwise_or(in.x, in.y)}; }},
      {"bitwise_xor.Tensor", kIntegers, [](In in) { return Out{at::bitwise_xor(in.x, in.y)}; }},
      {"__lshift__.Scalar", kI64, [](In in) { return Out{at::__lshift__(in.positive, 2)}; }},
      {"__rshift__.Scalar", kI64, [](In in) { return Out{at::__rshift__(in.positive, 1)}; }},
      {"lerp.Scalar", kFloating, [](In in) { return Out{at::lerp(in.x, in.y, 0.3)}; }},
      {"lerp.Tensor", kFloating, [](In in) { return Out{at::lerp(in.x, in.y, in.unit)}; }},
      {"addcmul", kNumbers, [](In in) { return Out{at::addcmul(in.x, in.y, in.z, 2)}; }},
      {"addcdiv", kFloating, [](In in) { return Out{at::addcdiv(in.x, in.y, in.positive, 2)}; }},
      {"where.self", kEvery, [](In in) { return Out{at::where(in.mask, in.x, in.y)}; }},
      {"where.ScalarOther", kNumbers, [](In in) { return Out{at::where(in.mask, in.x, 1)}; }},
      {"isclose", kNumbers, [](In in) { return Out{at::isclose(in.x, in.y, 0.5)}; }},
      {"complex", kPrecise, [](In in) { return Out{at::complex(in.x, in.y)}; }},
      {"polar", kPrecise, [](In in) { return Out{at::polar(in.positive, in.y)}; }},
  };
}

Out changed(In in, const std::function<void(at::Tensor&)>& change) {
  at::Tensor copy = in.x.clone();
  change(copy);
  return {copy};
}

std::vector<OperatorCase> written() {
  return {
      {"add_.Tensor", kNumbers,
       [](In in) { return changed(in, [&](at::Tensor& x) { x.add_(in.y); }); }},
      {"sub_.Tensor", kNumbers,
       [](In in) { return changed(in, [&](at::Tensor& x) { x.sub_(in.row, 2); }); }},
      {"mul_.Scalar", kNumbers,
       [](In in) { return changed(in, [](at::Tensor& x) { x.mul_(3); }); }},
      {"div_.Tensor", kFloating,
       [](In in) { return changed(in, [&](at::Tensor& x) { x.div_(in.positive); }); }},
      {"zero_", kEvery, [](In in) { return changed(in, [](at::Tensor& x) { x.zero_(); }); }},
      {"fill_.Scalar", kEvery,
       [](In in) { return changed(in, [](at::Tensor& x) { x.fill_(1); }); }},
      {"fill_.Tensor", kNumbers,
       [](In in) { return changed(in, [&](at::Tensor& x) { x.fill_(in.scalar); }); }},
      {"relu_", kFloating, [](In in) { return changed(in, [](at::Tensor& x) { x.relu_(); }); }},
      {"exp_", kFloating, [](In in) { return changed(in, [](at::Tensor& x) { x.exp_(); }); }},
      {"clamp_", kFloating,
       [](In in) { return changed(in, [](at::Tensor& x) { x.clamp_(-0.25, 0.5); }); }},
      {"addcmul_", kNumbers,
       [](In in) { return changed(in, [&](at::Tensor& x) { x.addcmul_(in.y, in.z); }); }},
      {"lerp_.Scalar", kFloating,
       [](In in) { return changed(in, [&](at::Tensor& x) { x.lerp_(in.y, 0.1); }); }},
      {"sigmoid_ (a view)", kFloating,
       [](In in) { return changed(in, [](at::Tensor& x) { x.select(1, 2).sigmoid_(); }); }},
      {"copy_ (broadcast)", kEvery,
       [](In in) { return changed(in, [&](at::Tensor& x) { x.copy_(in.row); }); }},
      {"copy_ (transposed)", kEvery,
       [](In in) { return changed(in, [&](at::Tensor& x) { x.copy_(in.transposed); }); }},
      {"eq_.Tensor", kNumbers,
       [](In in) { return changed(in, [&](at::Tensor& x) { x.eq_(in.y); }); }},
      {"add.out", kNumbers,
       [](In in) { return changed(in, [&](at::Tensor& x) { at::add_out(x, in.y, in.z); }); }},
      {"mul.out (a transposed output)", kNumbers,
       [](In in) {
         at::Tensor out = in.transposed.clone(at::MemoryFormat::Preserve);
         at::mul_out(out, in.y, in.z);
         return Out{out};
       }},
      {"exp.out (resized)", kFloating,
       [](In in) {
         at::Tensor out = at::empty({0}, in.x.options());
         at::exp_out(out, in.y);
         return Out{out};
       }},
      {"_foreach_add.List", kNumbers,
       [](In in) {
         return Out(at::_foreach_add({in.x, in.y}, {in.z, in.positive}));
       }},
      {"_foreach_mul_.Scalar", kNumbers,
       [](In in) {
         Tensors list{in.x.clone(), in.row.clone()};
         at::_foreach_mul_(list, 3);
         return list;
       }},
      {"_foreach_sqrt", kPrecise, [](In in) { return Out(at::_foreach_sqrt({in.positive})); }},
  };
}

}  // namespace

std::vector<OperatorCase> pointwise_cases() {
  std::vector<OperatorCase> all = unary();
  for (const auto& part : {binary(), written()}) all.insert(all.end(), part.begin(), part.end());
  return all;
}

}  // namespace slotgraph::device
