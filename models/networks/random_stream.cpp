#include "models/networks/random_stream.h"

#include <ATen/CPUGeneratorImpl.h>

#include "base/sha256.h"

namespace trainyard::networks {

std::uint64_t stream_seed(std::string_view purpose, std::uint64_t seed, std::string_view detail) {
  std::string name(purpose);
  name.append("/").append(std::to_string(seed)).append("/").append(detail);
  return std::stoull(models::sha256_hex(name).substr(0, 8), nullptr, 16);
}

at::Generator random_stream(std::string_view purpose, std::uint64_t seed, std::string_view detail) {
  return at::detail::createCPUGenerator(stream_seed(purpose, seed, detail));
}

}  // namespace trainyard::networks
