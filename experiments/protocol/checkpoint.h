// Checkpoints: what an interrupted run goes on from. After an epoch whose records are durable, replica 0 of
// each stage writes one file into the run's folder of checkpoints; replicas hold equal parameters, so theirs
// are enough. The last two epochs are kept: a crash between two stages' files leaves the epoch before whole
// in all. Written by `runner`, which alone knows what the values mean; the orchestrator looks for the last
// epoch that is whole in all stages (orchestrator/plan/resume_point.h) and removes them once the run has
// finished.
//
// A file is a line of JSON, the values, and 8 hexadecimal digits: the CRC-32C of all bytes before.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace trainyard::experiments {

inline constexpr const char* checkpoints_folder_name = "checkpoints";

// What a file holds, to be recognised again.
struct FileSum {
  std::uintmax_t bytes = 0;
  std::string crc;  // CRC-32C
  bool operator==(const FileSum&) const = default;
};
FileSum sum_of_file(const std::filesystem::path& file);  // std::system_error where it cannot be read

struct Checkpoint {
  std::string run;
  int attempt = 0;         // that trained the epoch
  std::int64_t epoch = 0;  // the last one that is in it
  int stage = 0;
  std::optional<FileSum> weights;  // stage 0: the file of kept weights beside it, where there is one
  nlohmann::json state;            // the runner's own, and what its values are
};

std::filesystem::path checkpoint_file(const std::filesystem::path& folder, std::int64_t epoch, int stage);
// The weights that the run had kept by then.
std::filesystem::path kept_weights_file(const std::filesystem::path& folder, std::int64_t epoch);

// A file of a folder of checkpoints, by its name.
struct CheckpointFile {
  std::filesystem::path path;
  std::int64_t epoch = 0;
  std::optional<int> stage;  // empty: kept weights
};
// Plain files only; none where the folder is missing.
std::vector<CheckpointFile> checkpoint_files(const std::filesystem::path& folder);

// Durable when it returns. std::system_error with the file's name where the disk does not take it.
void write_checkpoint(const std::filesystem::path& folder, const Checkpoint& checkpoint,
                      std::span<const std::string_view> values);

// Every byte of it is read and held against its checksum. UserError says what is wrong with it.
Checkpoint check_checkpoint(const std::filesystem::path& folder, std::int64_t epoch, int stage);
struct CheckpointContent {
  Checkpoint checkpoint;
  std::string values;
};
CheckpointContent read_checkpoint(const std::filesystem::path& folder, std::int64_t epoch, int stage);

}  // namespace trainyard::experiments
