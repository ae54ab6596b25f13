// Tensors in a file that other programs read: the safetensors format
// (https://github.com/huggingface/safetensors). 8 bytes with the length of the header (little endian), the
// header in JSON (name → dtype, shape, data_offsets), then the values, row by row, without gaps.
#pragma once

#include <filesystem>
#include <vector>

#include "models/networks/network.h"

namespace trainyard::networks {

// Writes all of `tensors`, whatever their memory order and device, or nothing: the file appears under its
// name when it is complete. UserError where the folder cannot be written to.
void write_safetensors(const std::filesystem::path& file, const std::vector<NamedParameter>& tensors);

// In the order of the file. UserError names the file and what is wrong with it.
std::vector<NamedParameter> read_safetensors(const std::filesystem::path& file);

}  // namespace trainyard::networks
