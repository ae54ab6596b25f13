// Random streams as pure functions: the same purpose, seed and detail give the same numbers in every process,
// under every mesh and in every order of construction. Anyone can make them again, also from Python: the
// stream is `torch.Generator().manual_seed(n)`, n being the first 8 hexadecimal digits of
// SHA-256("purpose/seed/detail").
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include "models/networks/network.h"

namespace trainyard::networks {

// What the stream of "weights/7/3.conv" and the like starts from; below 2^32, which is what the generator
// takes in.
std::uint64_t stream_seed(std::string_view purpose, std::uint64_t seed, std::string_view detail);

// A generator of its own on the CPU, at the start of that stream.
at::Generator random_stream(std::string_view purpose, std::uint64_t seed, std::string_view detail);

// The first values of parameters: PyTorch's own distributions, drawn from the stream "weights/seed/path" of
// the layer. Drawn in float64 whatever the type, in the order of the calls, so that all types start from the
// same numbers.

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
