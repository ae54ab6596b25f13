#include "base/host_name.h"

#include <array>

#include <unistd.h>

#include "base/text.h"

namespace trainyard {

std::string host_name() {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  return printable_line(name.data());
}

}  // namespace trainyard
