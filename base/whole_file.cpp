#include "base/whole_file.h"

#include <array>
#include <fstream>
#include <sstream>
#include <string_view>

#include "base/durable_file.h"

namespace trainyard::orchestrator {

std::string whole_file(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

void write_whole_file(const std::filesystem::path& file, const std::string& text) {
  experiments::write_durably(file, std::array{std::string_view(text)});
}

}  // namespace trainyard::orchestrator
