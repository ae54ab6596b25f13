#include "models/readers/npy_reader.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include "base/error.h"
#include "models/readers/data_file.h"

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

constexpr std::string_view blanks = " \t\r\n\f\v";

std::string_view without_blanks(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(blanks), text.size()));
  return text;
}

// What stands behind «'name' :» in the header; nothing where it has no such key.
std::optional<std::string_view> value_of(std::string_view header, std::string_view name) {
  for (std::size_t at = header.find(name); at != std::string_view::npos; at = header.find(name, at + 1)) {
    const std::string_view rest = without_blanks(header.substr(at + name.size()));
    if (rest.starts_with(':')) return without_blanks(rest.substr(1));
  }
  return std::nullopt;
}

// "u1" of '|u1'; a type of several fields as it stands.
std::string type_in(std::string_view header, const DataFile& file) {
  const auto type = value_of(header, "'descr'");
  if (!type) file.fail(10, "the header has no type");
  if (!type->starts_with('\'')) return "several fields";
  const std::string name(type->substr(1, std::min<std::size_t>(type->find('\'', 1) - 1, 20)));
  const bool ordered = !name.empty() && std::string_view("|<>=").find(name.front()) != std::string_view::npos;
  return ordered ? name.substr(1) : name;
}

// The numbers in the brackets of the shape.
std::vector<std::int64_t> shape_in(std::string_view header, const DataFile& file) {
  const auto value = value_of(header, "'shape'");
  if (!value || !value->starts_with('(') || value->find(')') == std::string_view::npos)
    file.fail(10, "the header has no shape");
  const std::string_view inside = value->substr(1, value->find(')') - 1);
  const auto impossible = [&] {
    file.fail(10, "the header has an impossible shape (" + std::string(inside.substr(0, 60)) + ")");
  };
  std::vector<std::int64_t> shape;
  double elements = 1;
  for (std::string_view rest = inside; !(rest = without_blanks(rest)).empty();) {
    if (rest.front() == ',') {
      rest.remove_prefix(1);
      continue;
    }
    std::int64_t length = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), length);
    if (error != std::errc() || length < 0) impossible();
    rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
    elements *= static_cast<double>(shape.emplace_back(length));
  }
  if (elements > 1e12) impossible();
  return shape;
}

// What is an array, and not one that can be used.
void refuse_others(std::string_view header, const DataFile& file, const std::string& name) {
  if (const std::string type = type_in(header, file); type != "u1")
    throw UserError(name + ": the array is of " + type + ", and must be of uint8 (u1)",
                    "convert it with .astype('uint8') before numpy.save; images from 0 to 1 times 255 first");
  if (value_of(header, "'fortran_order'").value_or("").starts_with("True"))
    throw UserError(name + ": the array is in Fortran's order",
                    "save numpy.ascontiguousarray of it with numpy.save");
}

}  // namespace

ByteArray read_npy(const std::filesystem::path& path, Sha256* hash) {
  DataFile file(path, hash, "write it again with numpy.save");
  const std::string header = read_header(file);
  refuse_others(header, file, path.string());
  ByteArray array{.shape = shape_in(header, file), .bytes = {}};
  std::uint64_t count = 1;
  for (const std::int64_t size : array.shape) count *= static_cast<std::uint64_t>(size);
  if (count == 0) throw UserError(path.string() + ": the array is empty");
  const std::string whole = std::to_string(count) + (count == 1 ? " element" : " elements");
  file.read_exactly(count, whole, [&](std::span<const std::uint8_t> bytes) {
    array.bytes.insert(array.bytes.end(), bytes.begin(), bytes.end());
  });
  file.expect_end(whole);
  return array;
}

}  // namespace trainyard::models
