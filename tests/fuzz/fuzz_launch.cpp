// Reads any bytes as run.json. Writing and reading the launch again must not change it. An error is one line.
#include <algorithm>

#include "base/error.h"
#include "experiments/protocol/launch.h"
#include "experiments/protocol/seal.h"
#include "tests/fuzz/memory_file.h"

using namespace trainyard;

namespace {

// The bytes with a right seal, if they are a JSON object. Otherwise nearly all inputs would end at this check.
std::string sealed_again(std::string bytes) try {
  // `dump` is recursive. A reader never gets a sealed file that is so deep.
  constexpr auto most_brackets = 5000;
  if (std::ranges::count_if(bytes, [](char c) { return c == '[' || c == '{'; }) > most_brackets) return bytes;
  auto object = nlohmann::json::parse(bytes);
  object.erase("crc");
  return experiments::sealed(object.dump());
} catch (const nlohmann::json::exception&) {
  return bytes;
} catch (const InternalError&) {
  return bytes;
}

void read(const std::string& bytes) try {
  const fuzz::MemoryFile file({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()});
  const experiments::Launch launch = experiments::read_launch(file.path());
  const nlohmann::json written = experiments::to_json(launch);
  if (experiments::to_json(experiments::launch_from_json(written)) != written) std::abort();
  if (experiments::run_key(launch.run).size() != 12) std::abort();
} catch (const UserError& error) {
  if (std::string_view(error.what()).find('\n') != std::string_view::npos) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(bytes), size);
  read(text);
  read(sealed_again(text));
  return 0;
}
