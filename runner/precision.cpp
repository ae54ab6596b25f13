#include "runner/precision.h"

#include <ATen/ATen.h>
#include <ATen/autocast_mode.h>

namespace trainyard::runner {

namespace {

// Autocast to bfloat16 while it lives; then everything is as it was, and the casts of weights are forgotten.
class Autocast {
 public:
  Autocast()
      : enabled_(at::autocast::is_autocast_enabled(at::kCPU)),
        dtype_(at::autocast::get_autocast_dtype(at::kCPU)) {
    at::autocast::set_autocast_enabled(at::kCPU, true);
    at::autocast::set_autocast_dtype(at::kCPU, at::kBFloat16);
    at::autocast::increment_nesting();
  }
  ~Autocast() {
    if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
    at::autocast::set_autocast_enabled(at::kCPU, enabled_);
    at::autocast::set_autocast_dtype(at::kCPU, dtype_);
  }
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  bool enabled_;
  at::ScalarType dtype_;
};

}  // namespace

networks::Activations forward_in(const std::string& precision, const networks::Network& network,
                                 const networks::Activations& inputs,
                                 const networks::ForwardContext& context) {
  if (precision != "bfloat16") return network.forward(inputs, context);
  const Autocast autocast;
  return network.forward(inputs, context);
}

at::Tensor for_loss(const at::Tensor& output) {
  return output.scalar_type() == at::kBFloat16 ? output.to(at::kFloat) : output;
}

}  // namespace trainyard::runner
