#include "models/readers/text_file.h"

#include <array>

#include "models/readers/data_file.h"
#include "models/samples/tokens.h"

namespace trainyard::models {

std::string read_text_file(const std::filesystem::path& path) {
  DataFile file(path);
  std::string text;
  std::array<std::uint8_t, 65536> piece;  // NOLINT(cppcoreguidelines-pro-type-member-init)
  for (std::size_t got = piece.size(); got == piece.size();) {
    got = file.read(piece);
    text.append(reinterpret_cast<const char*>(piece.data()), got);
  }
  if (const auto byte = first_not_utf8(text)) file.fail(*byte, "this is not UTF-8");
  return text;
}

}  // namespace trainyard::models
