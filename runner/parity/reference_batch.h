// The reference batch of an exported network: what PyTorch computed in one training step, and then in evaluation, when
// the file was written. docs/exported-models.md describes it.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

namespace trainyard::runner {

struct ReferenceCheck {
  std::size_t tensors = 0;   // outputs, losses, gradients and others that agree with PyTorch's
  std::string not_compared;  // why nothing was compared; empty if it was
};

// Computes both with the network of the file on the CPU, in float64 and without random numbers, and compares it with PyTorch's:
// each tensor to 1e-9 of the largest value of its kind. (A file of another program may have a reference in float32. Then
// it is computed in float32 and compared to 1e-3.)
// UserError if a tensor differs or the file is damaged. It names the tensor.
ReferenceCheck check_reference(const std::filesystem::path& file);

}  // namespace trainyard::runner
