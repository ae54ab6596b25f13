// Any bytes as an experiment file: it is expanded, or every problem is one line; nothing else may happen.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "experiments/file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(bytes), size);
  const auto loaded = trainyard::experiments::load_text(text, "f.toml");
  for (const auto& problem : loaded.problems)
    if (to_text(problem).find('\n') != std::string::npos) std::abort();
  if (!loaded.experiment && loaded.problems.empty()) std::abort();
  if (loaded.experiment && loaded.experiment->runs.empty()) std::abort();
  return 0;
}
