#include "tests/runner/number_files.h"

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

}  // namespace trainyard::runner::testing
