// Operators that make tensors, rearrange them, index them or convert them.
#include <ATen/ATen.h>

#include "core/device/host/cases.h"

namespace slotgraph::device {
namespace {

using In = const Inputs&;
using Out = Tensors;

std::vector<OperatorCase> factories() {
  return {
      {"zeros", kEvery,
       [](In in) {
         return Out{at::zeros({3, 4}, in.x.options())};
       }},
      {"ones", kEvery,
       [](In in) {
         return Out{at::ones({3, 4}, in.x.options())};
       }},
      {"full", kEvery, [](In in) { return Out{at::full({3}, 1, in.x.options())}; }},
      {"zeros_like", kEvery, [](In in) { return Out{at::zeros_like(in.transposed)}; }},
      {"ones_like", kEvery, [](In in) { return Out{at::ones_like(in.transposed)}; }},
      {"full_like", kNumbers, [](In in) { return Out{at::full_like(in.x, 7)}; }},
      {"new_zeros", kEvery,
       [](In in) {
         return Out{in.x.new_zeros({2, 2})};
       }},
      {"scalar_tensor", kNumbers, [](In in) { return Out{at::scalar_tensor(3, in.x.options())}; }},
      {"arange", kNumbers, [](In in) { return Out{at::arange(1, 9, 2, in.x.options())}; }},
      {"linspace", kFloating, [](In in) { return Out{at::linspace(0, 1, 7, in.x.options())}; }},
      {"logspace", kPrecise, [](In in) { return Out{at::logspace(0, 1, 7, 10, in.x.options())}; }},
      {"eye", kEvery, [](In in) { return Out{at::eye(3, 5, in.x.options())}; }},
      {"tril_indices", kI64, [](In in) { return Out{at::tril_indices(4, 4, 0, in.x.options())}; }},
      {"triu_indices", kI64, [](In in) { return Out{at::triu_indices(4, 4, 0, in.x.options())}; }},
  };
}

std::vector<OperatorCase> arranged() {
  return {
      {"cat", kEvery,
       [](In in) {
         return Out{at::cat({in.x, in.transposed, in.column}, 1)};
       }},
      {"stack", kEvery,
       [](In in) {
         return Out{at::stack({in.x, in.transposed}, 1)};
       }},
      {"split.Tensor", kEvery, [](In in) { return Out(at::split(in.x, 3, 1)); }},
      {"unbind.int", kEvery, [](In in) { return Out(at::unbind(in.x, 0)); }},
      {"chunk", kEvery, [](In in) { return Out(at::chunk(in.x, 3, 0)); }},
      {"view", kEvery,
       [](In in) {
         return Out{in.x.view({8, 6})};
       }},
      {"reshape (copies)", kEvery, [](In in) { return Out{at::reshape(in.transposed, {48})}; }},
      {"permute", kEvery,
       [](In in) {
         return Out{at::permute(in.batch, {2, 0, 1})};
       }},
      {"transpose.int", kEvery, [](In in) { return Out{at::transpose(in.batch, 1, 2)}; }},
      {"select.int", kEvery, [](In in) { return Out{at::select(in.x, 1, 3)}; }},
      {"slice.Tensor", kEvery, [](In in) { return Out{at::slice(in.x, 1, 1, 7, 2)}; }},
      {"narrow", kEvery, [](In in) { return Out{at::narrow(in.x, 0, 2, 3)}; }},
      {"expand", kEvery,
       [](In in) {
         return Out{in.row.expand({4, 8})};
       }},
      {"squeeze.dim", kEvery, [](In in) { return Out{at::squeeze(in.column, 1)}; }},
      {"unsqueeze", kEvery, [](In in) { return Out{at::unsqueeze(in.x, 1)}; }},
      {"diagonal", kEvery, [](In in) { return Out{at::diagonal(in.square, 1)}; }},
      {"as_strided", kEvery,
       [](In in) {
         return Out{at::as_strided(in.x, {3, 3}, {2, 5}, 4)};
       }},
      {"unfold", kEvery, [](In in) { return Out{in.x.unfold(1, 3, 2)}; }},
      {"clone", kEvery, [](In in) { return Out{in.transposed.clone()}; }},
      {"contiguous", kEvery, [](In in) { return Out{in.transposed.contiguous()}; }},
      {"flip", kEvery,
       [](In in) {
         return Out{at::flip(in.x, {0, 1})};
       }},
      {"roll", kEvery,
       [](In in) {
         return Out{at::roll(in.x, {2, 1}, {0, 1})};
       }},
      {"rot90", kEvery, [](In in) { return Out{at::rot90(in.x)}; }},
      {"repeat", kEvery,
       [](In in) {
         return Out{in.x.repeat({2, 3})};
       }},
      {"repeat_interleave.self_int", kEvery,
       [](In in) { return Out{at::repeat_interleave(in.x, 2, 0)}; }},
      {"tril", kEvery, [](In in) { return Out{at::tril(in.x, -1)}; }},
      {"triu", kEvery, [](In in) { return Out{at::triu(in.x, 1)}; }},
      {"diag_embed", kEvery, [](In in) { return Out{at::diag_embed(in.x)}; }},
      {"constant_pad_nd", kEvery,
       [](In in) {
         return Out{at::constant_pad_nd(in.x, {1, 2}, 1)};
       }},
      {"channel_shuffle", kFloating, [](In in) { return Out{at::channel_shuffle(in.image, 2)}; }},
      {"pixel_shuffle", kFloating, [](In in) { return Out{at::pixel_shuffle(in.image, 2)}; }},
      {"tril.out", kEvery,
       [](In in) {
         at::Tensor out = at::empty({6, 8}, in.x.options());
         at::tril_out(out, in.x);
         return Out{out};
       }},
      {"cat.out (resized)", kEvery,
       [](In in) {
         at::Tensor out = at::empty({0}, in.x.options());
         at::cat_out(out, {in.x, in.y});
         return Out{out};
       }},
      {"resize_", kEvery,
       [](In in) {
         return Out{in.x.clone().resize_({2, 3})};
       }},
      {"conj (resolved)", kPrecise,
       [](In in) { return Out{at::complex(in.x, in.y).conj().resolve_conj()}; }},
  };
}

std::vector<OperatorCase> conversions() {
  return {
      {"to.dtype", kEvery,
       [](In in) {
         return Out{in.x.to(at::kFloat), in.x.to(at::kDouble),       in.x.to(at::kBFloat16),
                    in.x.to(at::kLong),  in.transposed.to(at::kInt), in.x.to(at::kBool)};
       }},
      {"_to_copy", kEvery, [](In in) { return Out{at::_to_copy(in.transposed, at::kDouble)}; }},
      {"to (the CPU and back)", kEvery,
       [](In in) { return Out{in.transposed.to(at::kCPU).to(in.x.device())}; }},
      {"to (a type and a device)", kEvery,
       [](In in) { return Out{in.x.to(at::kCPU, at::kDouble).to(in.x.device(), at::kFloat)}; }},
      {"type_as", kEvery, [](In in) { return Out{in.x.type_as(in.mask)}; }},
      {"item", kEvery,
       [](In in) { return Out{at::scalar_tensor(in.x[1][2].item(), in.x.options())}; }},
  };
}

std::vector<OperatorCase> indexed() {
  return {
      {"index.Tensor", kEvery, [](In in) { return Out{at::index(in.x, {in.rows})}; }},
      {"index.Tensor (second dimension)", kEvery,
       [](In in) {
         return Out{at::index(in.x, {std::nullopt, in.classes})};
       }},
      {"index.Tensor (pairs)", kEvery,
       [](In in) {
         return Out{at::index(in.x, {in.rows, in.classes.slice(0, 0, 4)})};
       }},
      {"index.Tensor (indices of the CPU)", kEvery,
       [](In in) { return Out{at::index(in.x, {in.rows.to(at::kCPU)})}; }},
      {"index.Tensor (mask and indices)", kEvery,
       [](In in) {
         return Out{
             at::index(in.batch, {in.rows.slice(0, 0, 1) % 3, in.batch[0].select(1, 0) != 0})};
       }},
      {"index.Tensor (mask)", kEvery, [](In in) { return Out{at::index(in.x, {in.mask})}; }},
      {"index_put_", kEvery,
       [](In in) { return Out{in.x.clone().index_put_({in.rows}, in.y.slice(0, 0, 4))}; }},
      {"index_put_ (mask)", kEvery,
       [](In in) {
         return Out{in.x.clone().index_put_({in.mask}, in.y.index({in.mask})),
                    in.x.clone().index_put_({in.mask}, at::scalar_tensor(1, in.x.scalar_type()))};
       }},
      {"index_put_ (accumulate)", kNumbers,
       [](In in) { return Out{in.x.clone().index_put_({in.classes % 6}, in.y, true)}; }},
      {"index_select", kEvery, [](In in) { return Out{at::index_select(in.x, 0, in.rows)}; }},
      {"index_add", kNumbers,
       [](In in) { return Out{at::index_add(in.x, 0, in.rows, in.y.slice(0, 0, 4), 2)}; }},
      {"index_copy", kEvery,
       [](In in) { return Out{at::index_copy(in.x, 0, in.rows, in.y.slice(0, 0, 4))}; }},
      {"index_fill.int_Scalar", kEvery,
       [](In in) { return Out{at::index_fill(in.x, 0, in.rows, 1)}; }},
      {"index_reduce", kPrecise,
       [](In in) { return Out{at::index_reduce(in.x, 0, in.rows, in.y.slice(0, 0, 4), "amax")}; }},
      {"gather", kEvery, [](In in) { return Out{at::gather(in.x, 1, in.places)}; }},
      {"scatter.src", kEvery, [](In in) { return Out{at::scatter(in.x, 1, in.places, in.y)}; }},
      {"scatter.value", kEvery,
       [](In in) { return Out{at::scatter(in.x, 1, in.places.slice(1, 0, 3), 1)}; }},
      {"scatter_add", kNumbers,
       [](In in) { return Out{at::scatter_add(in.x, 0, in.places % 6, in.y)}; }},
      {"scatter_add_", kNumbers,
       [](In in) { return Out{in.x.clone().scatter_add_(1, in.places, in.y)}; }},
      {"scatter_reduce.two", kNumbers,
       [](In in) { return Out{at::scatter_reduce(in.x, 1, in.places, in.y, "amax")}; }},
      {"take", kEvery, [](In in) { return Out{at::take(in.x, in.places + 30)}; }},
      {"take_along_dim", kEvery, [](In in) { return Out{at::take_along_dim(in.x, in.places, 1)}; }},
      {"put_", kEvery,
       [](In in) { return Out{in.x.clone().put_(in.rows, in.row.slice(0, 0, 4))}; }},
      {"masked_fill.Scalar", kEvery, [](In in) { return Out{at::masked_fill(in.x, in.mask, 1)}; }},
      {"masked_fill_.Tensor", kNumbers,
       [](In in) { return Out{in.x.clone().masked_fill_(in.mask, in.scalar)}; }},
      {"masked_scatter", kEvery,
       [](In in) { return Out{at::masked_scatter(in.x, in.mask, in.y)}; }},
      {"masked_select", kEvery, [](In in) { return Out{at::masked_select(in.x, in.mask)}; }},
      {"nonzero", kEvery, [](In in) { return Out{at::nonzero(in.x)}; }},
      {"nonzero_static", kI64, [](In in) { return Out{at::nonzero_static(in.x, 60)}; }},
      {"argwhere", kEvery, [](In in) { return Out{at::argwhere(in.x)}; }},
      {"embedding", kFloating, [](In in) { return Out{at::embedding(in.square, in.places)}; }},
      {"one_hot", kI64, [](In in) { return Out{at::one_hot(in.classes, 8)}; }},
      {"isin.Tensor_Tensor", kNumbers, [](In in) { return Out{at::isin(in.x, in.x[2])}; }},
  };
}

}  // namespace

std::vector<OperatorCase> layout_cases() {
  std::vector<OperatorCase> all = factories();
  for (const auto& part : {arranged(), conversions()})
    all.insert(all.end(), part.begin(), part.end());
  return all;
}

std::vector<OperatorCase> indexing_cases() { return indexed(); }

}  // namespace slotgraph::device
