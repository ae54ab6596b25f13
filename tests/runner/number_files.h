// Numbers that a test and its reference in Python hand to one another: float64, as they lie in memory.
#pragma once

#include <filesystem>
#include <vector>

#include <ATen/core/Tensor.h>

namespace trainyard::runner::testing {

void write_numbers(const std::filesystem::path& file, const at::Tensor& values);
std::vector<double> read_numbers(const std::filesystem::path& file);

}  // namespace trainyard::runner::testing
