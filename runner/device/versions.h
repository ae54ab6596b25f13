// What this build is: `trainyard-runner --version --json`, and the versions that `start` records carry.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace trainyard::runner {

struct Versions {
  std::string trainyard;   // "0.1.0"
  std::string build_type;  // "Release"
  std::string libtorch;    // "2.13.0"
  std::string cuda;        // of the LibTorch wheel; empty for a CPU wheel
  std::string nccl;        // empty where NCCL is not built in
};

Versions versions();
nlohmann::ordered_json to_json(const Versions& versions);
std::string to_text(const Versions& versions);  // "trainyard 0.1.0 (Release, LibTorch 2.13.0)"

}  // namespace trainyard::runner
