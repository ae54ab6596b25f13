// The first values of parameters: PyTorch's own distributions, drawn from the stream "weights/seed/path" of
// the layer. Drawn in float64 whatever the type, in the order of the calls, so that all types start from the
// same numbers.
#pragma once

#include <string>

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include "models/networks/layers.h"

namespace trainyard::networks {

class InitialWeights {
 public:
  InitialWeights(std::string path, const Initialisation& start);

  // Uniform in ±bound. Channels last is the order that CPU convolutions are fastest in.
  NamedParameter uniform(const std::string& role, at::IntArrayRef sizes, double bound,
                         at::MemoryFormat format = at::MemoryFormat::Contiguous);
  // From the normal distribution of mean 0 and deviation 1.
  NamedParameter normal(const std::string& role, at::IntArrayRef sizes);
  NamedParameter constant(const std::string& role, at::IntArrayRef sizes, double value) const;

 private:
  NamedParameter parameter(const std::string& role, const at::Tensor& values) const;

  std::string path_;
  at::TensorOptions options_;
  at::Generator stream_;
};

// 1/√fan_in, the bound of linear and convolutional layers (kaiming_uniform with a = √5), also of their
// biases; fan_in is the product of all sizes of the weight but the first.
double fan_in_bound(at::IntArrayRef weight_sizes);

}  // namespace trainyard::networks
