// Random streams as pure functions: the same purpose, seed and detail give the same numbers in every process,
// under every mesh and in every order of construction. Anyone can make them again, also from Python: the
// stream is `torch.Generator().manual_seed(n)`, n being the first 8 hexadecimal digits of
// SHA-256("purpose/seed/detail").
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <ATen/core/Generator.h>

namespace trainyard::networks {

// What the stream of "weights/7/3.conv" and the like starts from; below 2^32, which is what the generator
// takes in.
std::uint64_t stream_seed(std::string_view purpose, std::uint64_t seed, std::string_view detail);

// A generator of its own on the CPU, at the start of that stream.
at::Generator random_stream(std::string_view purpose, std::uint64_t seed, std::string_view detail);

}  // namespace trainyard::networks
