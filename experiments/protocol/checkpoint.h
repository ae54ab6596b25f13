// Checkpoint files, from which an interrupted run resumes.
// - When the records of an epoch are durable, replica 0 of each stage writes one file to the run's folder of
//   checkpoints. Other replicas have equal parameters. Servers write files, too: their stages follow.
// - The last two epochs are kept. If a crash leaves an epoch incomplete, the previous one has all stages.
// - Only `runner` writes them and interprets the values. The orchestrator looks for the last complete epoch
//   (orchestrator/plan/resume_point.h), and removes the files when the run has finished.
// - A file is a line of JSON, the values, and the CRC-32C of all bytes before it (8 hexadecimal digits).
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

// Size and checksum of a file, to recognise its content.
struct FileSum {
  std::uintmax_t bytes = 0;
  std::string crc;  // CRC-32C
  bool operator==(const FileSum&) const = default;
};
FileSum sum_of_file(const std::filesystem::path& file);  // std::system_error if it cannot be read

struct Checkpoint {
  std::string run;
  int attempt = 0;         // attempt that trained the epoch
  std::int64_t epoch = 0;  // last epoch that is included
  int stage = 0;
  std::optional<FileSum> weights;  // stage 0: file of kept weights, if there is one
  nlohmann::json state;            // state of the runner, and a description of the values
};

std::filesystem::path checkpoint_file(const std::filesystem::path& folder, std::int64_t epoch, int stage);
// The file of the weights that the run had kept up to this epoch.
std::filesystem::path kept_weights_file(const std::filesystem::path& folder, std::int64_t epoch);

// A file in the folder of checkpoints, identified by its name.
struct CheckpointFile {
  std::filesystem::path path;
  std::int64_t epoch = 0;
  std::optional<int> stage;  // empty: kept weights
};
// Only regular files. Empty if the folder is missing.
std::vector<CheckpointFile> checkpoint_files(const std::filesystem::path& folder);

// Writes the file; it is durable on return. std::system_error with the file's name if it cannot be written.
void write_checkpoint(const std::filesystem::path& folder, const Checkpoint& checkpoint,
                      std::span<const std::string_view> values);

// Reads the whole file and checks its checksum. UserError if it is damaged.
Checkpoint check_checkpoint(const std::filesystem::path& folder, std::int64_t epoch, int stage);
struct CheckpointContent {
  Checkpoint checkpoint;
  std::string values;
};
CheckpointContent read_checkpoint(const std::filesystem::path& folder, std::int64_t epoch, int stage);

}  // namespace trainyard::experiments
