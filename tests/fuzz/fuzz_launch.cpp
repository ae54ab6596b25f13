// Reads any bytes as run.json. Writing and reading the launch again must not change it. An error is one line.
#include "base/error.h"
#include "experiments/protocol/launch.h"
#include "tests/fuzz/memory_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace trainyard;
  const fuzz::MemoryFile file({bytes, size});
  try {
    const experiments::Launch launch = experiments::read_launch(file.path());
    const nlohmann::json written = experiments::to_json(launch);
    if (experiments::to_json(experiments::launch_from_json(written)) != written) std::abort();
    if (experiments::run_key(launch.run).size() != 12) std::abort();
  } catch (const UserError& error) {
    if (std::string_view(error.what()).find('\n') != std::string_view::npos) std::abort();
  }
  return 0;
}
