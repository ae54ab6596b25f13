// Appends records to one spool: one `write` a record, `seq` from 0 without gaps, `elapsed_seconds` on the
// monotonic clock since construction. Used by a rank for its own spool and by the orchestrator for its own.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

namespace trainyard::experiments {

class RecordWriter {
 public:
  // Opens `spool` for appending and goes on after its last whole record; a torn last line is cut off first.
  // std::system_error with the file's name where that fails.
  RecordWriter(const std::filesystem::path& spool, std::string run, int attempt, std::optional<int> rank);
  ~RecordWriter();
  RecordWriter(const RecordWriter&) = delete;
  RecordWriter& operator=(const RecordWriter&) = delete;

  // Appends a record of `type` with the members of `body` after the common ones.
  void append(const std::string& type, const nlohmann::ordered_json& body = nlohmann::ordered_json::object());
  void sync();  // fsync

 private:
  int fd_ = -1;
  std::filesystem::path spool_;
  std::string run_;
  int attempt_;
  std::optional<int> rank_;
  std::int64_t next_seq_ = 0;
  std::chrono::steady_clock::time_point start_;
};

// File names of the attempt directory.
std::string rank_records_name(int rank);   // "rank-0.records.jsonl"
std::string rank_log_name(int rank);       // "rank-0.log"
std::string rank_progress_name(int rank);  // "rank-0.progress"
inline constexpr const char* orchestrator_records_name = "orchestrator.records.jsonl";
inline constexpr const char* run_file_name = "run.json";

}  // namespace trainyard::experiments
