#include "runner/device/precision.h"

#include <array>
#include <optional>

#include <ATen/ATen.h>
#include <ATen/Context.h>
#include <ATen/autocast_mode.h>

#include "base/error.h"
#include "base/named_row.h"

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

// Autocast to `dtype` on `device` while it lives; then everything is as it was, and the casts of weights are
// forgotten.
class Autocast {
 public:
  Autocast(at::DeviceType device, at::ScalarType dtype)
      : device_(device),
        enabled_(at::autocast::is_autocast_enabled(device)),
        dtype_(at::autocast::get_autocast_dtype(device)) {
    at::autocast::set_autocast_enabled(device, true);
    at::autocast::set_autocast_dtype(device, dtype);
    at::autocast::increment_nesting();
  }
  ~Autocast() {
    if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
    at::autocast::set_autocast_enabled(device_, enabled_);
    at::autocast::set_autocast_dtype(device_, dtype_);
  }
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  at::DeviceType device_;
  bool enabled_;
  at::ScalarType dtype_;
};

}  // namespace

void use_precision(const std::string& precision, const at::Device& device) {
  const Precision& row = find_precision(precision);
  if (row.tf32 && device.is_cpu())
    throw UserError("precision \"" + precision + "\" is one of GPUs, and this rank trains on CPU cores",
                    "use \"float32\", \"bfloat16\" or \"float16\"");
  if (device.is_cpu()) return;
  at::globalContext().setAllowTF32CuBLAS(row.tf32);
  at::globalContext().setAllowTF32CuDNN(row.tf32);  // LibTorch would allow it for convolutions
}

networks::Activations forward_in(const std::string& precision, const networks::Network& network,
                                 const networks::Activations& inputs,
                                 const networks::ForwardContext& context) {
  const std::optional<at::ScalarType> dtype = find_precision(precision).mixed_with;
  if (!dtype) return network.forward(inputs, context);
  const Autocast autocast(inputs.front().device().type(), *dtype);
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
