// Reductions, scans, sorting and matrix products.
#include <ATen/ATen.h>

#include "core/device/host/cases.h"

namespace slotgraph::device {
namespace {

using In = const Inputs&;
using Out = Tensors;

const std::optional<at::Scalar> kCorrection = 1;

template <typename Tuple>
Out list(const Tuple& tuple) {
  return std::apply([](const auto&... element) { return Out{element...}; }, tuple);
}

std::vector<OperatorCase> totals() {
  return {
      {"sum", kEvery, [](In in) { return Out{at::sum(in.x)}; }},
      {"sum.dim_IntList", kEvery,
       [](In in) {
         return Out{at::sum(in.x, {1}), at::sum(in.batch, at::IntArrayRef{0, 2}, true)};
       }},
      {"sum.dim_IntList (double result)", kF32,
       [](In in) { return Out{at::sum(in.x, {0}, false, at::kDouble)}; }},
      {"sum.dim_IntList (transposed)", kNumbers,
       [](In in) { return Out{at::sum(in.transposed, {0})}; }},
      {"mean", kFloating, [](In in) { return Out{at::mean(in.x)}; }},
      {"mean.dim", kFloating, [](In in) { return Out{at::mean(in.x, {0}, true)}; }},
      {"nansum", kPrecise, [](In in) { return Out{at::nansum(in.x.sqrt(), {1})}; }},
      {"prod", kNumbers, [](In in) { return Out{at::prod(in.x)}; }},
      {"prod.dim_int", kNumbers, [](In in) { return Out{at::prod(in.x, 1, true)}; }},
      {"amax", kEvery, [](In in) { return Out{at::amax(in.x, {1})}; }},
      {"amin", kEvery,
       [](In in) {
         return Out{at::amin(in.x, {0, 1})};
       }},
      {"aminmax", kNumbers, [](In in) { return list(at::aminmax(in.x, 1)); }},
      {"max", kEvery, [](In in) { return Out{at::max(in.x)}; }},
      {"max.dim", kEvery, [](In in) { return list(at::max(in.x, 1)); }},
      {"min", kEvery, [](In in) { return Out{at::min(in.x)}; }},
      {"min.dim", kNumbers, [](In in) { return list(at::min(in.x, 0, true)); }},
      {"argmax", kNumbers,
       [](In in) {
         return Out{at::argmax(in.x, 1), at::argmax(in.x)};
       }},
      {"argmin", kNumbers, [](In in) { return Out{at::argmin(in.x, 0)}; }},
      {"all", kEvery,
       [](In in) {
         return Out{at::all(in.x), at::all(in.x, 1)};
       }},
      {"any", kEvery,
       [](In in) {
         return Out{at::any(in.x), at::any(in.x, 0)};
       }},
      {"var.correction", kFloating,
       [](In in) { return Out{at::var(in.x, at::IntArrayRef{1}, kCorrection)}; }},
      {"std.correction", kFloating,
       [](In in) { return Out{at::std(in.x, at::IntArrayRef{0}, kCorrection)}; }},
      {"var_mean.correction", kFloating,
       [](In in) { return list(at::var_mean(in.x, at::IntArrayRef{1}, kCorrection)); }},
      {"std_mean.correction", kPrecise,
       [](In in) { return list(at::std_mean(in.x, at::IntArrayRef{1}, kCorrection)); }},
      {"norm.ScalarOpt_dim", kFloating,
       [](In in) {
         return Out{at::norm(in.x, 2, {1}), at::norm(in.x, 1, {0})};
       }},
      {"linalg_vector_norm", kFloating, [](In in) { return Out{at::linalg_vector_norm(in.x, 3)}; }},
      {"logsumexp", kFloating, [](In in) { return Out{at::logsumexp(in.x, {1})}; }},
      {"count_nonzero.dim_IntList", kEvery,
       [](In in) { return Out{at::count_nonzero(in.x, at::IntArrayRef{1})}; }},
      {"median.dim", kNumbers, [](In in) { return list(at::median(in.x, 1)); }},
      {"median", kNumbers, [](In in) { return Out{at::median(in.x)}; }},
      {"nanmedian", kFloating, [](In in) { return Out{at::nanmedian(in.x)}; }},
      {"mode", kNumbers, [](In in) { return list(at::mode(in.x, 1)); }},
      {"kthvalue", kNumbers, [](In in) { return list(at::kthvalue(in.x, 3, 1)); }},
      {"histc", kPrecise, [](In in) { return Out{at::histc(in.x, 8, -1, 1)}; }},
      {"trace", kPrecise | kI64, [](In in) { return Out{at::trace(in.square)}; }},
      {"sum.IntList_out", kNumbers,
       [](In in) {
         at::Tensor out = at::empty({0}, in.x.options());
         at::sum_out(out, in.x, at::IntArrayRef{1});
         return Out{out};
       }},
      {"equal", kEvery,
       [](In in) {
         const auto flag = [&](bool value) { return at::full({}, value, in.mask.options()); };
         return Out{flag(at::equal(in.x, in.x.clone())), flag(at::equal(in.x, in.y))};
       }},
  };
}

std::vector<OperatorCase> ordered() {
  return {
      {"cumsum", kEvery,
       [](In in) {
         return Out{at::cumsum(in.x, 1), at::cumsum(in.x, 0)};
       }},
      {"cumprod", kNumbers, [](In in) { return Out{at::cumprod(in.x, 1)}; }},
      {"cummax", kNumbers, [](In in) { return list(at::cummax(in.x, 1)); }},
      {"cummin", kNumbers, [](In in) { return list(at::cummin(in.x, 0)); }},
      {"logcumsumexp", kPrecise, [](In in) { return Out{at::logcumsumexp(in.x, 1)}; }},
      {"diff", kNumbers, [](In in) { return Out{at::diff(in.x)}; }},
      {"sort", kEvery, [](In in) { return list(at::sort(in.x, 1, true)); }},
      {"sort.stable", kNumbers, [](In in) { return list(at::sort(in.x, true, 0, false)); }},
      {"argsort", kNumbers, [](In in) { return Out{at::argsort(in.x, true, 1, false)}; }},
      {"topk", kNumbers, [](In in) { return list(at::topk(in.x, 3, 1)); }},
      {"searchsorted.Tensor", kNumbers,
       [](In in) { return Out{at::searchsorted(std::get<0>(in.x.sort(1)), in.y)}; }},
      {"bucketize.Tensor", kNumbers,
       [](In in) { return Out{at::bucketize(in.x, std::get<0>(in.row.sort()))}; }},
      {"_unique2", kNumbers, [](In in) { return list(at::_unique2(in.x, true, true, true)); }},
      {"unique_consecutive", kNumbers,
       [](In in) { return list(at::unique_consecutive(in.x.sign(), true, true)); }},
      {"unique_dim", kNumbers, [](In in) { return list(at::unique_dim(in.x, 0)); }},
      {"bincount", kI64, [](In in) { return Out{at::bincount(in.positive.flatten())}; }},
  };
}

std::vector<OperatorCase> products() {
  return {
      {"mm", kNumbers, [](In in) { return Out{at::mm(in.x, in.square)}; }},
      {"mm (transposed)", kNumbers, [](In in) { return Out{at::mm(in.transposed, in.y.t())}; }},
      {"addmm", kNumbers, [](In in) { return Out{at::addmm(in.row, in.x, in.square, 2, 3)}; }},
      {"addmm_", kNumbers, [](In in) { return Out{in.x.clone().addmm_(in.y, in.square)}; }},
      {"bmm", kNumbers, [](In in) { return Out{at::bmm(in.batch, in.factors)}; }},
      {"baddbmm", kNumbers,
       [](In in) {
         return Out{at::baddbmm(at::ones({3, 4, 5}, in.x.options()), in.batch, in.factors)};
       }},
      {"addbmm", kFloating,
       [](In in) {
         return Out{at::addbmm(at::ones({4, 5}, in.x.options()), in.batch, in.factors)};
       }},
      {"matmul", kNumbers,
       [](In in) {
         return Out{at::matmul(in.batch, in.square), at::matmul(in.x, in.row)};
       }},
      {"mv", kNumbers, [](In in) { return Out{at::mv(in.x, in.row)}; }},
      {"addmv", kNumbers, [](In in) { return Out{at::addmv(in.column.squeeze(1), in.x, in.row)}; }},
      {"dot", kNumbers, [](In in) { return Out{at::dot(in.row, in.x[0])}; }},
      {"vdot", kPrecise, [](In in) { return Out{at::vdot(in.row, in.x[1])}; }},
      {"ger", kNumbers, [](In in) { return Out{at::ger(in.row, in.x[2])}; }},
      {"addr", kNumbers, [](In in) { return Out{at::addr(in.square, in.row, in.x[2])}; }},
      {"linear", kFloating,
       [](In in) {
         return Out{at::linear(in.batch, in.square, in.row), at::linear(in.x, in.y)};
       }},
      {"einsum", kFloating,
       [](In in) {
         return Out{at::einsum("bij,bjk->bik", {in.batch, in.factors})};
       }},
      {"mm.out", kNumbers,
       [](In in) {
         at::Tensor out = at::empty({6, 8}, in.x.options());
         at::mm_out(out, in.x, in.square);
         return Out{out};
       }},
      {"outer", kNumbers, [](In in) { return Out{at::outer(in.row, in.row)}; }},
      {"kron", kNumbers, [](In in) { return Out{at::kron(in.column, in.x)}; }},
      {"linalg_cross", kNumbers,
       [](In in) { return Out{at::linalg_cross(in.x.slice(1, 0, 3), in.y.slice(1, 0, 3))}; }},
      {"cdist", kPrecise, [](In in) { return Out{at::cdist(in.x, in.y, 1.0)}; }},
      {"linalg_cholesky_ex", kPrecise,
       [](In in) { return list(at::linalg_cholesky_ex(at::mm(in.square, in.square.t()))); }},
      {"linalg_lu_factor_ex", kPrecise,
       [](In in) { return list(at::linalg_lu_factor_ex(in.square)); }},
      {"linalg_solve_triangular", kPrecise,
       [](In in) { return Out{at::linalg_solve_triangular(in.square.triu(), in.x.t(), true)}; }},
      {"linalg_inv_ex", kPrecise, [](In in) { return list(at::linalg_inv_ex(in.square)); }},
      {"linalg_qr", kPrecise, [](In in) { return list(at::linalg_qr(in.square)); }},
      {"_linalg_det", kPrecise, [](In in) { return list(at::_linalg_det(in.square)); }},
  };
}

}  // namespace

std::vector<OperatorCase> reduction_cases() {
  std::vector<OperatorCase> all = totals();
  const auto more = ordered();
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

std::vector<OperatorCase> algebra_cases() { return products(); }

}  // namespace slotgraph::device
