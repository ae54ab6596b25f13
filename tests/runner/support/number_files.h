// Numbers that a test and its reference in Python hand to one another: float64, as they lie in memory.
#pragma once

#include <filesystem>
#include <vector>

#include <ATen/core/Tensor.h>

namespace trainyard::runner::testing {

void write_numbers(const std::filesystem::path& file, const at::Tensor& values);
std::vector<double> read_numbers(const std::filesystem::path& file);

// The largest difference of two lists of the same length, in parts of what was expected, but of no less than
// 0.01; NaN where one of the differences is.
double largest_difference(const std::vector<double>& found, const std::vector<double>& expected);

}  // namespace trainyard::runner::testing
