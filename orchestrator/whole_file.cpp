#include "orchestrator/whole_file.h"

#include <fstream>
#include <sstream>

namespace trainyard::orchestrator {

std::string whole_file(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

}  // namespace trainyard::orchestrator
