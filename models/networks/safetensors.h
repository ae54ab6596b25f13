// Read and write tensors in the safetensors format (https://github.com/huggingface/safetensors).
// A file has 8 bytes with the length of the header (little endian), the header in JSON (name → dtype, shape,
// data_offsets), and the values in row-major order without gaps.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "models/networks/network.h"

namespace trainyard::networks {

// Write tensors with any memory order, from any device. The file gets its name only when it is complete.
// UserError if it cannot be written.
void write_safetensors(const std::filesystem::path& file, const std::vector<NamedParameter>& tensors);

// Read all tensors of the content of a file, in its order. `name`: of its source, for errors.
// UserError if the content is damaged.
std::vector<NamedParameter> parse_safetensors(const std::string& content, const std::string& name);

}  // namespace trainyard::networks
