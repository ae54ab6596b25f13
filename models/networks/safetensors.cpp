#include "models/networks/safetensors.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <fstream>
#include <string_view>
#include <utility>

#include <ATen/ATen.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "base/error.h"
#include "base/named_row.h"

namespace trainyard::networks {

namespace {

using nlohmann::ordered_json;

static_assert(std::endian::native == std::endian::little, "the format is little endian");

struct NumberType {
  std::string_view name;
  at::ScalarType type;
};

constexpr std::array types{NumberType{"F64", at::kDouble}, NumberType{"F32", at::kFloat},
                           NumberType{"F16", at::kHalf},   NumberType{"BF16", at::kBFloat16},
                           NumberType{"I64", at::kLong},   NumberType{"I32", at::kInt},
                           NumberType{"I16", at::kShort},  NumberType{"I8", at::kChar},
                           NumberType{"U8", at::kByte},    NumberType{"BOOL", at::kBool}};

std::string_view name_of(at::ScalarType type) {
  const auto found =
      std::find_if(types.begin(), types.end(), [&](const NumberType& row) { return row.type == type; });
  if (found == types.end()) throw InternalError("safetensors cannot store this type");
  return found->name;
}

// The header, padded so that the values begin at a multiple of 8 bytes.
std::string header_of(const std::vector<NamedParameter>& tensors) {
  ordered_json header = ordered_json::object();
  std::size_t offset = 0;
  for (const NamedParameter& tensor : tensors) {
    const std::size_t end = offset + tensor.value.nbytes();
    header[tensor.name] = {{"dtype", name_of(tensor.value.scalar_type())},
                           {"shape", tensor.value.sizes().vec()},
                           {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  return text;
}

void write_all(std::ofstream& out, const std::vector<NamedParameter>& tensors) {
  const std::string header = header_of(tensors);
  const std::uint64_t length = header.size();
  out.write(reinterpret_cast<const char*>(&length), sizeof length);
  out.write(header.data(), static_cast<std::streamsize>(header.size()));
  for (const NamedParameter& tensor : tensors) {
    const at::Tensor values = tensor.value.detach().to(at::kCPU).contiguous();
    out.write(static_cast<const char*>(values.const_data_ptr()),
              static_cast<std::streamsize>(values.nbytes()));
  }
  out.close();
}

class Reader {
 public:
  // `name`: of the source, for errors.
  Reader(std::string_view content, std::string name) : content_(content), name_(std::move(name)) {}

  std::vector<NamedParameter> read() {
    const ordered_json header = read_header();
    std::vector<NamedParameter> tensors;
    for (const auto& [name, entry] : header.items()) {
      if (name != "__metadata__") tensors.push_back({name, read_tensor(name, entry)});
    }
    return tensors;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw UserError(name_ + " is not a complete safetensors file: " + what, "write it again");
  }

  ordered_json read_header() {
    std::uint64_t length = 0;
    if (content_.size() < sizeof length) fail("it ends in its first 8 bytes");
    std::memcpy(&length, content_.data(), sizeof length);
    content_.remove_prefix(sizeof length);
    if (length > content_.size()) fail("it ends in its header");
    ordered_json header =
        ordered_json::parse(content_.substr(0, length), nullptr, /*allow_exceptions=*/false);
    content_.remove_prefix(length);
    if (!header.is_object()) fail("its header is not a JSON object");
    return header;
  }

  at::Tensor read_tensor(const std::string& name, const ordered_json& entry) {
    try {
      const auto shape = entry.at("shape").get<std::vector<std::int64_t>>();
      const auto offsets = entry.at("data_offsets").get<std::array<std::uint64_t, 2>>();
      at::Tensor values = at::empty(shape, type_named(entry.at("dtype").get<std::string>()));
      if (offsets[0] > offsets[1] || offsets[1] - offsets[0] != values.nbytes() ||
          offsets[1] > content_.size()) {
        fail("the values of " + name + " are not where its header says");
      }
      if (values.nbytes() > 0)
        std::memcpy(values.mutable_data_ptr(), content_.data() + offsets[0], values.nbytes());
      return values;
    } catch (const ordered_json::exception&) {
      fail("the header's entry of " + name + " is wrong");
    } catch (const c10::Error&) {
      fail("the shape of " + name + " is wrong");
    }
  }

  at::ScalarType type_named(const std::string& name) const {
    const NumberType* type = row_or_null(types, &NumberType::name, name);
    if (type == nullptr) fail("type " + name + " is not supported");
    return type->type;
  }

  std::string_view content_;  // after `read_header` the values
  std::string name_;
};

}  // namespace

void write_safetensors(const std::filesystem::path& file, const std::vector<NamedParameter>& tensors) {
  std::filesystem::path unfinished = file;
  unfinished += ".unfinished-" + std::to_string(getpid());
  std::ofstream out(unfinished, std::ios::binary);
  write_all(out, tensors);
  std::error_code error;
  if (out) std::filesystem::rename(unfinished, file, error);
  if (out && !error) return;
  std::filesystem::remove(unfinished, error);
  throw UserError(file.string() + ": cannot be written", "check the folder and the free disk space");
}

std::vector<NamedParameter> parse_safetensors(const std::string& content, const std::string& name) {
  return Reader(content, name).read();
}

}  // namespace trainyard::networks
