// Random streams that depend only on purpose, seed and detail: initial weights, dropout, order of samples, ….
// Python can reproduce a stream: `torch.Generator().manual_seed(n)`, where n is the first 8 hexadecimal
// digits of SHA-256("purpose/seed/detail").
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include "models/networks/network.h"

namespace trainyard::networks {

// The seed of the stream "purpose/seed/detail". It is below 2^32, because the generator uses only 32 bits.
std::uint64_t stream_seed(std::string_view purpose, std::uint64_t seed, std::string_view detail);

// A new CPU generator at the beginning of the stream.
at::Generator random_stream(std::string_view purpose, std::uint64_t seed, std::string_view detail);

// Initial values of the parameters of a layer, drawn from the stream "weights/seed/path".
// They are drawn in float64, in the order of the calls, so that all types begin with the same values.
class InitialWeights {
 public:
  InitialWeights(std::string path, const Initialisation& start);
  // Parameters of a node with a part are drawn whole and then cut.
  InitialWeights(const models::Node& node, const Initialisation& start) : InitialWeights(node.path, start) {
    node_ = &node;
  }

  // Uniform in ±bound. CPU convolutions are fastest with the format "channels last".
  NamedParameter uniform(const std::string& role, at::IntArrayRef sizes, double bound,
                         at::MemoryFormat format = at::MemoryFormat::Contiguous) {
    return drawn(role, sizes, {.kind = models::InitialRule::Kind::uniform, .value = bound}, format);
  }
  NamedParameter drawn(const std::string& role, at::IntArrayRef sizes, const models::InitialRule& rule,
                       at::MemoryFormat format = at::MemoryFormat::Contiguous);
  NamedParameter constant(const std::string& role, at::IntArrayRef sizes, double value) const;

 private:
  NamedParameter parameter(const std::string& role, const at::Tensor& whole,
                           at::MemoryFormat format = at::MemoryFormat::Contiguous) const;

  const models::Node* node_ = nullptr;
  std::string path_;
  at::TensorOptions options_;
  at::Generator stream_;
};

// 1/√fan_in: PyTorch's bound for the weights and biases of linear and convolutional layers (kaiming_uniform
// with a = √5). fan_in is the product of all sizes of the weight but the first.
double fan_in_bound(at::IntArrayRef weight_sizes);

}  // namespace trainyard::networks
