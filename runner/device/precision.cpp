#include "runner/device/precision.h"

#include <array>
#include <string>

#include <ATen/ATen.h>
#include <ATen/Context.h>
#include <c10/core/DefaultDtype.h>

#include "base/error.h"
#include "base/named_row.h"
#include "models/networks/libtorch_private.h"

namespace trainyard::runner {

namespace {

constexpr std::array precisions{
    Precision{.name = "float32"}, Precision{.name = "float64", .parameters = at::kDouble},
    Precision{.name = "bfloat16", .mixed_with = at::kBFloat16},
    Precision{.name = "float16", .mixed_with = at::kHalf, .needs_loss_scale = true},
    Precision{.name = "tf32", .tf32 = true}};

}  // namespace

const Precision& find_precision(std::string_view name) {
  return named_row(precisions, &Precision::name, "precision", name);
}

void use_precision(const Precision& precision, const at::Device& device) {
  if (precision.tf32 && device.is_cpu())
    throw UserError(
        "precision \"" + std::string(precision.name) + "\" needs a GPU, but this rank trains on the CPU",
        "use \"float32\", \"bfloat16\" or \"float16\"");
  c10::set_default_dtype(c10::scalarTypeToTypeMeta(precision.parameters));
  if (device.is_cpu()) return;
  at::globalContext().setAllowTF32CuBLAS(precision.tf32);
  at::globalContext().setAllowTF32CuDNN(precision.tf32);  // LibTorch's default is true for convolutions
}

networks::Activations forward_in(const Precision& precision, const networks::Network& network,
                                 const networks::Activations& inputs,
                                 const networks::ForwardContext& context) {
  if (!precision.mixed_with) return network.forward(inputs, context);
  const libtorch::Autocast autocast(inputs.front().device().type(), *precision.mixed_with);
  return network.forward(inputs, context);
}

at::Tensor for_loss(const at::Tensor& output) {
  const bool half = output.scalar_type() == at::kBFloat16 || output.scalar_type() == at::kHalf;
  return half ? output.to(at::kFloat) : output;
}

}  // namespace trainyard::runner
