#include "runner/parity/parameter_check.h"

#include <cstdint>
#include <string>
#include <string_view>

#include <ATen/ATen.h>

#include "base/error.h"
#include "base/sha256.h"

namespace trainyard::runner {

namespace {

// 60 bits of SHA-256 of the values in logical order, so that memory layout and device do not matter.
std::string hash_text(const at::Tensor& parameter) {
  const at::Tensor values = parameter.detach().to(at::kCPU).contiguous();
  const std::string_view bytes(static_cast<const char*>(values.const_data_ptr()), values.nbytes());
  return models::sha256_hex(bytes).substr(0, 15);
}

std::int64_t hash_of(const at::Tensor& parameter) {
  return std::stoll(hash_text(parameter), nullptr, 16);
}

}  // namespace

void check_equal_parameters(const std::vector<networks::NamedParameter>& parameters,
                            Communicator& communicator) {
  std::vector<std::int64_t> hashes;
  hashes.reserve(parameters.size());
  for (const auto& parameter : parameters) hashes.push_back(hash_of(parameter.value));
  const at::Tensor own = at::tensor(hashes, at::kLong);
  const at::Tensor first = own.clone();
  communicator.broadcast(first, 0);
  const at::Tensor differing = own.ne(first).to(at::kLong);  // by parameter; then of all ranks
  communicator.all_reduce(differing)->wait();
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const auto ranks = differing[static_cast<std::int64_t>(i)].item<std::int64_t>();
    if (ranks == 0) continue;
    throw InternalError("ranks start from different parameters: " + std::to_string(ranks) + " of " +
                        std::to_string(communicator.size()) + " ranks differ from rank 0 in " +
                        parameters[i].name);
  }
}

std::map<std::string, std::string> parameter_hashes(const std::vector<networks::NamedParameter>& parameters) {
  std::map<std::string, std::string> hashes;
  for (const auto& parameter : parameters) hashes[parameter.name] = hash_text(parameter.value);
  return hashes;
}

}  // namespace trainyard::runner
