// Activations, normalisations, losses, pooling, and gradients through autograd.
#include <ATen/ATen.h>

#include "core/device/host/cases.h"

namespace slotgraph::device {
namespace {

using In = const Inputs&;
using Out = Tensors;

std::vector<OperatorCase> forward() {
  return {
      {"softmax.int", kFloating,
       [](In in) {
         return Out{at::softmax(in.x, 1), at::softmax(in.x, 0)};
       }},
      {"softmax.int (float result)", kB16,
       [](In in) { return Out{at::softmax(in.x, -1, at::kFloat)}; }},
      {"log_softmax.int", kFloating, [](In in) { return Out{at::log_softmax(in.batch, -1)}; }},
      {"native_layer_norm", kFloating,
       [](In in) {
         const auto [y, mean, rstd] = at::native_layer_norm(in.x, {8}, in.row, in.row, 1e-5);
         return Out{y, mean, rstd};
       }},
      {"layer_norm (no weights)", kFloating,
       [](In in) {
         return Out{at::layer_norm(in.batch, {4, 8})};
       }},
      {"rms_norm", kFloating, [](In in) { return Out{at::rms_norm(in.x, {8}, in.row)}; }},
      {"native_batch_norm", kPrecise,
       [](In in) {
         at::Tensor mean = in.row.clone(), variance = in.row.abs();
         const auto [y, m, r] =
             at::native_batch_norm(in.x, in.row, in.row, mean, variance, true, 0.1, 1e-5);
         return Out{y, m, r, mean, variance};
       }},
      {"max_pool2d_with_indices", kFloating,
       [](In in) {
         const auto [y, places] = at::max_pool2d_with_indices(in.image, {2, 2});
         return Out{y, places};
       }},
      {"avg_pool2d", kFloating,
       [](In in) {
         return Out{at::avg_pool2d(in.image, {3, 3}, {2, 2})};
       }},
      {"adaptive_avg_pool2d", kFloating,
       [](In in) {
         return Out{at::adaptive_avg_pool2d(in.image, {3, 5})};
       }},
      {"upsample_nearest2d", kFloating,
       [](In in) {
         return Out{at::upsample_nearest2d(in.image, at::IntArrayRef{16, 12})};
       }},
      {"upsample_bilinear2d", kFloating,
       [](In in) {
         return Out{at::upsample_bilinear2d(in.image, at::IntArrayRef{16, 12}, false)};
       }},
      {"grid_sampler_2d", kPrecise,
       [](In in) {
         const at::Tensor grid = in.image.slice(1, 0, 2).permute({0, 2, 3, 1}).contiguous();
         return Out{at::grid_sampler_2d(in.image, grid, 0, 0, false)};
       }},
      {"reflection_pad2d", kFloating,
       [](In in) {
         return Out{at::reflection_pad2d(in.image, {1, 2, 2, 1})};
       }},
      {"replication_pad2d", kFloating,
       [](In in) {
         return Out{at::replication_pad2d(in.image, {1, 2, 2, 1})};
       }},
      {"im2col", kFloating,
       [](In in) {
         return Out{at::im2col(in.image, {2, 2}, {1, 1}, {0, 0}, {2, 2})};
       }},
  };
}

// One row of the table of gradients: the function's value and its gradients are compared.
OperatorCase gradient(const char* name, unsigned types, at::Tensor (*function)(In, const Tensors&),
                      Tensors (*inputs)(In)) {
  return {std::string(name) + " (gradient)", types, [=](In in) {
            return with_gradients(inputs(in),
                                  [&](const Tensors& leaves) { return function(in, leaves); });
          }};
}

Tensors only_x(In in) { return {in.x}; }
Tensors x_and_y(In in) { return {in.x, in.y}; }
Tensors image(In in) { return {in.image}; }

std::vector<OperatorCase> activations() {
  const unsigned f = kFloating;
  using L = const Tensors&;
  return {
      gradient(
          "relu", f, [](In, L l) { return at::relu(l[0]); }, only_x),
      gradient(
          "relu6", f, [](In, L l) { return at::relu6(l[0] * 9); }, only_x),
      gradient(
          "gelu", f, [](In, L l) { return at::gelu(l[0]); }, only_x),
      gradient(
          "gelu (tanh)", f, [](In, L l) { return at::gelu(l[0], "tanh"); }, only_x),
      gradient(
          "silu", f, [](In, L l) { return at::silu(l[0]); }, only_x),
      gradient(
          "mish", f, [](In, L l) { return at::mish(l[0]); }, only_x),
      gradient(
          "elu", f, [](In, L l) { return at::elu(l[0]); }, only_x),
      gradient(
          "selu", f, [](In, L l) { return at::selu(l[0]); }, only_x),
      gradient(
          "celu", f, [](In, L l) { return at::celu(l[0], 1.5); }, only_x),
      gradient(
          "softplus", f, [](In, L l) { return at::softplus(l[0]); }, only_x),
      gradient(
          "softshrink", f, [](In, L l) { return at::softshrink(l[0], 0.3); }, only_x),
      gradient(
          "hardshrink", f, [](In, L l) { return at::hardshrink(l[0], 0.3); }, only_x),
      gradient(
          "hardtanh", f, [](In, L l) { return at::hardtanh(l[0], -0.5, 0.5); }, only_x),
      gradient(
          "hardsigmoid", f, [](In, L l) { return at::hardsigmoid(l[0] * 4); }, only_x),
      gradient(
          "hardswish", f, [](In, L l) { return at::hardswish(l[0] * 4); }, only_x),
      gradient(
          "leaky_relu", f, [](In, L l) { return at::leaky_relu(l[0], 0.1); }, only_x),
      gradient(
          "threshold", f, [](In, L l) { return at::threshold(l[0], 0.1, 2); }, only_x),
      gradient(
          "log_sigmoid", f, [](In, L l) { return at::log_sigmoid(l[0]); }, only_x),
      gradient(
          "glu", f, [](In, L l) { return at::glu(l[0], 1); }, only_x),
      gradient(
          "prelu", f, [](In, L l) { return at::prelu(l[0], l[1]); },
          [](In in) {
            return Tensors{in.x, in.row};
          }),
      gradient(
          "tanh", f, [](In, L l) { return at::tanh(l[0]); }, only_x),
      gradient(
          "sigmoid", f, [](In, L l) { return at::sigmoid(l[0]); }, only_x),
      gradient(
          "softmax", f, [](In, L l) { return at::softmax(l[0], 1); }, only_x),
      gradient(
          "log_softmax", f, [](In, L l) { return at::log_softmax(l[0], 1); }, only_x),
  };
}

std::vector<OperatorCase> differentiated() {
  const unsigned f = kFloating;
  using L = const Tensors&;
  return {
      gradient(
          "mul", f, [](In, L l) { return l[0] * l[1] + l[0].exp(); }, x_and_y),
      gradient(
          "div", f, [](In, L l) { return l[0] / (l[1] + 3); }, x_and_y),
      gradient(
          "pow", f, [](In, L l) { return l[0].pow(3); }, only_x),
      gradient(
          "matmul", f, [](In, L l) { return at::matmul(l[0], l[1].t()); }, x_and_y),
      gradient(
          "linear", f, [](In, L l) { return at::linear(l[0], l[1], l[2]); },
          [](In in) {
            return Tensors{in.batch, in.square, in.row};
          }),
      gradient(
          "bmm", f, [](In, L l) { return at::bmm(l[0], l[1]); },
          [](In in) {
            return Tensors{in.batch, in.factors};
          }),
      gradient(
          "layer_norm", f, [](In, L l) { return at::layer_norm(l[0], {8}, l[1], l[2]); },
          [](In in) {
            return Tensors{in.x, in.row, in.row};
          }),
      gradient(
          "batch_norm", kPrecise,
          [](In, L l) { return at::batch_norm(l[0], l[1], l[2], {}, {}, true, 0.1, 1e-5, false); },
          [](In in) {
            return Tensors{in.x, in.row, in.row};
          }),
      gradient(
          "embedding", f, [](In in, L l) { return at::embedding(l[0], in.places); },
          [](In in) { return Tensors{in.square}; }),
      gradient(
          "layer_norm (expanded)", f,
          [](In, L l) { return at::layer_norm(l[0], {8}, l[1], l[2]).sum(); },
          [](In in) {
            return Tensors{in.x, in.row, in.row};
          }),
      gradient(
          "sum", f, [](In, L l) { return l[0].sum(1); }, only_x),
      gradient(
          "mean", f, [](In, L l) { return l[0].mean(); }, only_x),
      gradient(
          "var", f, [](In, L l) { return l[0].var(1); }, only_x),
      gradient(
          "norm", f, [](In, L l) { return l[0].norm(2, 1); }, only_x),
      gradient(
          "max", f, [](In, L l) { return std::get<0>(l[0].max(1)); }, only_x),
      gradient(
          "sort", f, [](In, L l) { return std::get<0>(l[0].sort(1)); }, only_x),
      gradient(
          "cumsum", f, [](In, L l) { return l[0].cumsum(1); }, only_x),
      gradient(
          "logsumexp", f, [](In, L l) { return l[0].logsumexp(1); }, only_x),
      gradient(
          "cat", f,
          [](In, L l) {
            return at::cat({l[0], l[1], l[0]}, 1);
          },
          x_and_y),
      gradient(
          "where", f, [](In in, L l) { return at::where(in.mask, l[0], l[1]); }, x_and_y),
      gradient(
          "gather", f, [](In in, L l) { return l[0].gather(1, in.places % 3); }, only_x),
      gradient(
          "scatter_add", f, [](In in, L l) { return l[0].scatter_add(1, in.places, l[1]); },
          x_and_y),
      gradient(
          "index", f, [](In in, L l) { return l[0].index({in.classes % 6}); }, only_x),
      gradient(
          "index_select", f, [](In in, L l) { return l[0].index_select(0, in.rows); }, only_x),
      gradient(
          "masked_fill", f, [](In in, L l) { return l[0].masked_fill(in.mask, 2); }, only_x),
      gradient(
          "tril", f, [](In, L l) { return l[0].tril(); }, only_x),
      gradient(
          "slice", f, [](In, L l) { return l[0].slice(1, 1, 6, 2); }, only_x),
      gradient(
          "unfold", f, [](In, L l) { return l[0].unfold(1, 3, 1); }, only_x),
      gradient(
          "to", kPrecise, [](In, L l) { return l[0].to(at::kBFloat16).to(at::kFloat); }, only_x),
      gradient(
          "max_pool2d", f,
          [](In, L l) {
            return at::max_pool2d(l[0], {2, 2});
          },
          image),
      gradient(
          "avg_pool2d", f,
          [](In, L l) {
            return at::avg_pool2d(l[0], {2, 2});
          },
          image),
      gradient(
          "adaptive_avg_pool2d", f,
          [](In, L l) {
            return at::adaptive_avg_pool2d(l[0], {3, 3});
          },
          image),
      gradient(
          "upsample_nearest2d", f,
          [](In, L l) {
            return at::upsample_nearest2d(l[0], at::IntArrayRef{16, 16});
          },
          image),
      gradient(
          "reflection_pad2d", f,
          [](In, L l) {
            return at::reflection_pad2d(l[0], {1, 1, 1, 1});
          },
          image),
  };
}

std::vector<OperatorCase> losses() {
  const unsigned f = kFloating;
  using L = const Tensors&;
  return {
      gradient(
          "mse_loss", f, [](In in, L l) { return at::mse_loss(l[0], in.y); }, only_x),
      gradient(
          "l1_loss", f, [](In in, L l) { return at::l1_loss(l[0], in.y); }, only_x),
      gradient(
          "smooth_l1_loss", f, [](In in, L l) { return at::smooth_l1_loss(l[0], in.y); }, only_x),
      gradient(
          "huber_loss", f, [](In in, L l) { return at::huber_loss(l[0], in.y); }, only_x),
      gradient(
          "cross_entropy_loss", f,
          [](In in, L l) { return at::cross_entropy_loss(l[0], in.classes); }, only_x),
      gradient(
          "nll_loss", f, [](In in, L l) { return at::nll_loss(l[0], in.classes, {}, 2); }, only_x),
      gradient(
          "kl_div", kPrecise, [](In in, L l) { return at::kl_div(l[0], in.unit, 1); }, only_x),
      gradient(
          "binary_cross_entropy", f,
          [](In in, L l) { return at::binary_cross_entropy(l[0].sigmoid(), in.unit); }, only_x),
      gradient(
          "binary_cross_entropy_with_logits", f,
          [](In in, L l) { return at::binary_cross_entropy_with_logits(l[0], in.unit); }, only_x),
      gradient(
          "hinge_embedding_loss", f,
          [](In in, L l) { return at::hinge_embedding_loss(l[0], in.y.sign()); }, only_x),
      gradient(
          "multi_margin_loss", kPrecise,
          [](In in, L l) { return at::multi_margin_loss(l[0], in.classes); }, only_x),
      gradient(
          "soft_margin_loss", kPrecise,
          [](In in, L l) { return at::soft_margin_loss(l[0], in.y.sign()); }, only_x),
      gradient(
          "cosine_similarity", kPrecise, [](In, L l) { return at::cosine_similarity(l[0], l[1]); },
          x_and_y),
  };
}

}  // namespace

std::vector<OperatorCase> neural_cases() { return forward(); }

std::vector<OperatorCase> gradient_cases() {
  std::vector<OperatorCase> all = activations();
  for (const auto& part : {differentiated(), losses()})
    all.insert(all.end(), part.begin(), part.end());
  return all;
}

std::vector<ExceptionCase> exception_cases() {
  return {
      {"group_norm", [](In in) { return Out{at::group_norm(in.image, 2, {}, {}, 1e-5)}; },
       "a composite of batch norm on any device but the CPU, whose kernel sums in another order",
       nullptr},
      {"conv2d",
       [](In in) { return Out{at::conv2d(in.image, in.image.slice(2, 0, 3).slice(3, 0, 3))}; },
       "libtorch chooses another implementation for CUDA", nullptr},
      {"scaled_dot_product_attention",
       [](In in) { return Out{at::scaled_dot_product_attention(in.image, in.image, in.image)}; },
       "the composite of matrix products, not the CPU's fused kernel", nullptr},
      {"view_as_real", [](In in) { return Out{at::view_as_real(at::complex(in.x, in.y))}; },
       "returns a view; training has no use for it", "aten::view_as_real"},
      {"multinomial", [](In in) { return Out{at::multinomial(in.positive, 2)}; },
       "random; no kernel is written for it", "aten::multinomial"},
      {"randperm", [](In in) { return Out{at::randperm(5, in.classes.options())}; },
       "random; no kernel is written for it", "aten::randperm"},
      {"to (Half)", [](In in) { return Out{in.x.to(at::kHalf)}; }, "CPU kernels for Half are few",
       "does not serve Half"},
  };
}

}  // namespace slotgraph::device
