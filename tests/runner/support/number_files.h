// Files of float64 numbers that a test and its Python reference exchange.
#pragma once

#include <filesystem>
#include <vector>

#include <ATen/core/Tensor.h>

namespace trainyard::runner::testing {

void write_numbers(const std::filesystem::path& file, const at::Tensor& values);
std::vector<double> read_numbers(const std::filesystem::path& file);

// The largest difference of two lists of the same length, relative to max(|expected|, 0.01). NaN if any is
// NaN.
double largest_difference(const std::vector<double>& found, const std::vector<double>& expected);

}  // namespace trainyard::runner::testing
