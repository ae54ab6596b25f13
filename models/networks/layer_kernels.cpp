#include "models/networks/layer_kernels.h"

#include <vector>

#include <ATen/ATen.h>
#include <ATen/Dispatch.h>
#include <torch/csrc/autograd/custom_function.h>

#include "models/networks/libtorch_private.h"
#include "models/networks/vector_kernels.h"

namespace trainyard::networks {

namespace {

namespace autograd = torch::autograd;

// The rows of a matrix that occur in a list of rows.
struct UsedRows {
  at::Tensor rows;                      // int64 [1, used], ascending
  std::vector<std::int32_t> positions;  // by row of the matrix: its index in `rows`; −1 if it is not used
};

UsedRows used_rows(const at::Tensor& rows, std::int64_t of) {
  UsedRows used{{}, std::vector<std::int32_t>(static_cast<std::size_t>(of), -1)};
  const auto* row = rows.const_data_ptr<std::int64_t>();
  for (std::int64_t i = 0; i < rows.size(0); ++i) used.positions[static_cast<std::size_t>(row[i])] = 0;
  std::int32_t count = 0;
  for (std::int32_t& position : used.positions)
    if (position == 0) position = count++;
  used.rows = at::empty({1, count}, at::kLong);
  auto* listed = used.rows.mutable_data_ptr<std::int64_t>();
  for (std::int64_t i = 0; i < of; ++i)
    if (const auto position = used.positions[static_cast<std::size_t>(i)]; position >= 0)
      listed[position] = i;
  return used;
}

// For each word of a text, add the gradient of the text's mean, divided by its number of words, to the word's
// row.
template <class Number>
void add_gradients(at::Tensor& values, const at::Tensor& of_means, const at::Tensor& rows,
                   const at::Tensor& starts, const std::vector<std::int32_t>& positions) {
  const std::int64_t texts = starts.size(0), words = rows.size(0), columns = values.size(1);
  const auto* row = rows.const_data_ptr<std::int64_t>();
  const auto* start = starts.const_data_ptr<std::int64_t>();
  for (std::int64_t text = 0; text < texts; ++text) {
    const std::int64_t begin = start[text], end = text + 1 < texts ? start[text + 1] : words;
    if (begin == end) continue;
    const at::Tensor share = of_means[text].div(static_cast<double>(end - begin));
    for (std::int64_t i = begin; i < end; ++i)
      add_to(values.mutable_data_ptr<Number>() + positions[static_cast<std::size_t>(row[i])] * columns,
             share.const_data_ptr<Number>(), columns);
  }
}

at::Tensor sparse_gradient(const at::Tensor& of_means, const at::Tensor& rows, const at::Tensor& starts,
                           std::int64_t of_rows) {
  const UsedRows used = used_rows(rows, of_rows);
  at::Tensor values = at::zeros({used.rows.size(1), of_means.size(1)}, of_means.options());
  AT_DISPATCH_FLOATING_TYPES(of_means.scalar_type(), "mean_of_rows", [&] {
    add_gradients<scalar_t>(values, of_means.contiguous(), rows, starts, used.positions);
  });
  return libtorch::sparse_tensor(used.rows, values, {of_rows, of_means.size(1)});
}

class MeanOfRows : public autograd::Function<MeanOfRows> {
 public:
  static at::Tensor forward(autograd::AutogradContext* context, const at::Tensor& matrix,
                            const at::Tensor& rows, const at::Tensor& starts) {
    context->save_for_backward({rows, starts});
    context->saved_data["rows"] = matrix.size(0);
    constexpr std::int64_t mean = 1;
    return std::get<0>(at::embedding_bag(matrix, rows, starts, /*scale_grad_by_freq=*/false, mean));
  }

  static autograd::variable_list backward(autograd::AutogradContext* context,
                                          autograd::variable_list of_means) {
    const autograd::variable_list saved = context->get_saved_variables();
    return {sparse_gradient(of_means.at(0), saved.at(0), saved.at(1), context->saved_data["rows"].toInt()),
            at::Tensor(), at::Tensor()};
  }
};

// With more outputs, the plain operator was as fast or faster.
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

// The backward pass uses the plain operator.
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

at::Tensor mean_of_rows(const at::Tensor& matrix, const at::Tensor& rows, const at::Tensor& starts) {
  return MeanOfRows::apply(matrix, rows.contiguous(), starts.contiguous());
}

at::Tensor transposed_convolution(const at::Tensor& images, const at::Tensor& weight, const at::Tensor& bias,
                                  const TransposedConvolution& how) {
  const bool plain = !images.is_cpu() || weight.size(1) > few_outputs || weight.size(2) != weight.size(3) ||
                     libtorch::cpu_autocast().has_value();
  if (!plain) return ToFewOutputs::apply(images, weight, bias, how);
  return at::conv_transpose2d(images, weight, bias, how.stride, how.padding, how.output_padding);
}

}  // namespace trainyard::networks
