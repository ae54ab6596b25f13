// Short runs for each kind of strategy, as attempts in their own folders.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "experiments/protocol/launch.h"

namespace trainyard::runner::testing {

inline constexpr std::int64_t epochs_of_small_runs = 2;

// Networks with random operations and state of every kind.
experiments::Run small_vgg11();
experiments::Run small_seq2seq();
experiments::Run small_mlp();

struct Shape {
  const char* kind;
  std::int64_t replicas, stages;
  const char* schedule;
  std::int64_t micro_batches;
  std::int64_t servers = 0;
  std::int64_t tensor = 1;
};
inline constexpr Shape single{"single", 1, 1, "", 1};
inline constexpr Shape ddp{"ddp", 3, 1, "", 1};
inline constexpr Shape mp{"mp", 1, 2, "", 1};
inline constexpr Shape pipeline{"pipeline", 1, 2, "gpipe", 3};
inline constexpr Shape mp_ddp{"mp-ddp", 2, 2, "1f1b", 2};
inline constexpr Shape served{"parameter-server", 3, 1, "", 1, 2};
inline constexpr Shape in_parts{"tensor", 1, 1, "", 1, 0, 2};

experiments::Run shaped(experiments::Run run, const Shape& shape);

// The first attempt of `run`, in a new folder below `folder`.
experiments::Launch launch_in(const std::filesystem::path& folder, const experiments::Run& run,
                              const std::string& checkpoint);

// The next attempt, which resumes after `epoch`.
experiments::Launch after(experiments::Launch launch, std::int64_t epoch);

}  // namespace trainyard::runner::testing
