#include "tests/runner/support/number_files.h"

#include <fstream>

#include <ATen/ATen.h>

namespace trainyard::runner::testing {

void write_numbers(const std::filesystem::path& file, const at::Tensor& values) {
  const at::Tensor dense = values.to(at::kDouble).contiguous();
  std::ofstream(file, std::ios::binary)
      .write(static_cast<const char*>(dense.const_data_ptr()), static_cast<std::streamsize>(dense.nbytes()));
}

std::vector<double> read_numbers(const std::filesystem::path& file) {
  std::vector<double> values(std::filesystem::file_size(file) / sizeof(double));
  std::ifstream(file, std::ios::binary)
      .read(reinterpret_cast<char*>(values.data()),
            static_cast<std::streamsize>(values.size() * sizeof(double)));
  return values;
}

double largest_difference(const std::vector<double>& found, const std::vector<double>& expected) {
  const at::Tensor ours = at::tensor(found, at::kDouble), theirs = at::tensor(expected, at::kDouble);
  return ((ours - theirs).abs() / theirs.abs().clamp_min(0.01)).max().item<double>();
}

}  // namespace trainyard::runner::testing
