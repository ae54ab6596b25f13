// Reads any bytes as a file of published numbers. Writing and reading them again as JSON must not change
// them.

#include <nlohmann/json.hpp>

#include "experiments/config/diagnostics.h"
#include "experiments/file/read_reference_results.h"
#include "experiments/run/strategies.h"
#include "models/catalogue.h"
#include "tests/fuzz/memory_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace trainyard::experiments;
  Diagnostics problems;
  const Published published =
      published_from_toml({reinterpret_cast<const char*>(bytes), size}, "published.toml",
                          {trainyard::models::model_names(), strategy_names()}, problems);
  if (problems.errors() > 0) return 0;
  if (to_json(published_from_json(to_json(published))) != to_json(published)) std::abort();
  return 0;
}
