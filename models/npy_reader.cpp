#include "models/npy_reader.h"

#include <limits>
#include <regex>
#include <string>

#include "models/data_file.h"

namespace trainyard::models {

namespace {

std::string read_bytes(DataFile& file, std::uint64_t count, const std::string& whole) {
  std::string text;
  file.read_exactly(count, whole, [&](std::span<const std::uint8_t> bytes) {
    text.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  });
  return text;
}

// The header is a literal of a Python dictionary.
std::string read_header(DataFile& file) {
  const std::string start = read_bytes(file, 8, "its header");
  if (!start.starts_with("\x93NUMPY")) file.fail(0, "this is not a NumPy array (.npy)");
  const std::string size = read_bytes(file, start[6] == 1 ? 2 : 4, "its header");
  std::uint64_t count = 0;
  for (std::size_t i = 0; i < size.size(); ++i)
    count |= static_cast<std::uint64_t>(static_cast<unsigned char>(size[i])) << (8 * i);
  if (count > 65536) file.fail(8, "the header is " + std::to_string(count) + " bytes long");
  return read_bytes(file, count, "its header");
}

std::vector<std::int64_t> shape_in(const std::string& header, const DataFile& file) {
  std::smatch found;
  if (!std::regex_search(header, found, std::regex(R"('shape'\s*:\s*\(([\d,\s]*)\))")))
    file.fail(10, "the header has no shape");
  const std::string inside = found[1];
  std::vector<std::int64_t> shape;
  const std::regex number(R"(\d+)");
  double elements = 1;
  for (auto at = std::sregex_iterator(inside.begin(), inside.end(), number); at != std::sregex_iterator();
       ++at) {
    if (at->length() > 12) file.fail(10, "the header has an impossible shape (" + inside + ")");
    shape.push_back(std::stoll(at->str()));
    elements *= static_cast<double>(shape.back());
  }
  if (shape.empty() || elements < 1 || elements > 1e12)
    file.fail(10, "the header has an impossible shape (" + inside + ")");
  return shape;
}

}  // namespace

ByteArray read_npy(const std::filesystem::path& path, Sha256* hash) {
  DataFile file(path, hash);
  const std::string header = read_header(file);
  if (!std::regex_search(header, std::regex(R"('descr'\s*:\s*'[|<>=]?u1')")))
    file.fail(10, "the array is not of uint8; convert it with .astype('uint8')");
  if (std::regex_search(header, std::regex(R"('fortran_order'\s*:\s*True)")))
    file.fail(10, "the array is in Fortran's order; convert it with numpy.ascontiguousarray");
  ByteArray array{.shape = shape_in(header, file), .bytes = {}};
  std::uint64_t count = 1;
  for (const std::int64_t size : array.shape) count *= static_cast<std::uint64_t>(size);
  const std::string whole = std::to_string(count) + " elements";
  file.read_exactly(count, whole, [&](std::span<const std::uint8_t> bytes) {
    array.bytes.insert(array.bytes.end(), bytes.begin(), bytes.end());
  });
  file.expect_end(whole);
  return array;
}

}  // namespace trainyard::models
