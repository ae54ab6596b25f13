#include "models/networks/transposed_convolution.h"

#include <ATen/ATen.h>
#include <ATen/autocast_mode.h>
#include <torch/csrc/autograd/custom_function.h>

namespace trainyard::networks {

namespace {

namespace autograd = torch::autograd;

// With more, the plain operator was as fast or faster.
constexpr std::int64_t few_outputs = 4;

std::int64_t output_size(std::int64_t size, std::int64_t kernel, const TransposedConvolution& how, int side) {
  return (size - 1) * how.stride - 2 * how.padding + kernel +
         how.output_padding[static_cast<std::size_t>(side)];
}

at::Tensor by_matrix_product(const at::Tensor& images, const at::Tensor& weight, const at::Tensor& bias,
                             const TransposedConvolution& how) {
  const std::int64_t kernel = weight.size(2);
  const at::Tensor columns = weight.reshape({weight.size(0), -1}).t().matmul(images.flatten(2));
  const at::Tensor sum = at::col2im(
      columns, {output_size(images.size(2), kernel, how, 0), output_size(images.size(3), kernel, how, 1)},
      {kernel, kernel}, /*dilation=*/{1, 1}, {how.padding, how.padding}, {how.stride, how.stride});
  return sum.add_(bias.view({-1, 1, 1})).contiguous(images.suggest_memory_format());
}

// The gradients are the plain operator's.
class ToFewOutputs : public autograd::Function<ToFewOutputs> {
 public:
  static at::Tensor forward(autograd::AutogradContext* context, const at::Tensor& images,
                            const at::Tensor& weight, const at::Tensor& bias,
                            const TransposedConvolution& how) {
    context->save_for_backward({images, weight});
    context->saved_data["how"] =
        std::vector<std::int64_t>{how.stride, how.padding, how.output_padding[0], how.output_padding[1]};
    return by_matrix_product(images, weight, bias, how);
  }

  static autograd::variable_list backward(autograd::AutogradContext* context,
                                          const autograd::variable_list& of_outputs) {
    const autograd::variable_list saved = context->get_saved_variables();
    const auto how = context->saved_data["how"].toIntVector();
    const auto [of_images, of_weight, of_bias] = at::convolution_backward(
        of_outputs.at(0), saved.at(0), saved.at(1), /*bias_sizes=*/{{saved.at(1).size(1)}}, {how[0], how[0]},
        {how[1], how[1]}, /*dilation=*/{1, 1}, /*transposed=*/true, {how[2], how[3]}, /*groups=*/1,
        {context->needs_input_grad(0), context->needs_input_grad(1), context->needs_input_grad(2)});
    return {of_images, of_weight, of_bias, at::Tensor()};
  }
};

}  // namespace

at::Tensor transposed_convolution(const at::Tensor& images, const at::Tensor& weight, const at::Tensor& bias,
                                  const TransposedConvolution& how) {
  const bool plain = !images.is_cpu() || weight.size(1) > few_outputs || weight.size(2) != weight.size(3) ||
                     at::autocast::is_autocast_enabled(at::kCPU);
  if (!plain) return ToFewOutputs::apply(images, weight, bias, how);
  return at::conv_transpose2d(images, weight, bias, how.stride, how.padding, how.output_padding);
}

}  // namespace trainyard::networks
