#include "runner/device/precision.h"

#include <array>
#include <optional>

#include <ATen/ATen.h>
#include <ATen/Context.h>

#include "base/error.h"
#include "base/named_row.h"
#include "models/networks/libtorch_private.h"

namespace trainyard::runner {

namespace {

struct Precision {
  const char* name;
  std::optional<at::ScalarType> mixed_with;
  bool tf32;
  bool needs_loss_scale;
};

constexpr std::array precisions{
    Precision{"float32", std::nullopt, false, false}, Precision{"bfloat16", at::kBFloat16, false, false},
    Precision{"float16", at::kHalf, false, true}, Precision{"tf32", std::nullopt, true, false}};

const Precision& find_precision(const std::string& name) {
  return named_row(precisions, &Precision::name, "precision", name);
}

}  // namespace

void use_precision(const std::string& precision, const at::Device& device) {
  const Precision& row = find_precision(precision);
  if (row.tf32 && device.is_cpu())
    throw UserError("precision \"" + precision + "\" needs a GPU, but this rank trains on the CPU",
                    "use \"float32\", \"bfloat16\" or \"float16\"");
  if (device.is_cpu()) return;
  at::globalContext().setAllowTF32CuBLAS(row.tf32);
  at::globalContext().setAllowTF32CuDNN(row.tf32);  // LibTorch's default is true for convolutions
}

networks::Activations forward_in(const std::string& precision, const networks::Network& network,
                                 const networks::Activations& inputs,
                                 const networks::ForwardContext& context) {
  const std::optional<at::ScalarType> dtype = find_precision(precision).mixed_with;
  if (!dtype) return network.forward(inputs, context);
  const libtorch::Autocast autocast(inputs.front().device().type(), *dtype);
  return network.forward(inputs, context);
}

at::Tensor for_loss(const at::Tensor& output) {
  const bool half = output.scalar_type() == at::kBFloat16 || output.scalar_type() == at::kHalf;
  return half ? output.to(at::kFloat) : output;
}

bool needs_loss_scale(const std::string& precision) {
  return find_precision(precision).needs_loss_scale;
}

double probed_loss_scale(const std::string& precision) {
  return needs_loss_scale(precision) ? 256 : 1;
}

}  // namespace trainyard::runner
