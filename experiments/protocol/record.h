// Records: format, writer and times. Runner and orchestrator append them to the record logs of an attempt, the
// orchestrator tails them, and `db` ingests them.
// - A record is one line with one JSON object, sealed with a CRC-32C (seal.h).
// - Members: `v, run, attempt, rank, seq, type, time, elapsed_seconds`, then those of its type, then `crc`.
// - `crc` is optional when reading, for foreign programs. The orchestrator's own records have no `rank`.
// - `probe` (runner/parity/parity_check.h) has `step, loss, reference_loss, gradient_norm` and `layers`. This
//   is a list of `{path, gradient_norm, difference, parameter_hash}` in the order of the layers.
//   `reference_loss` and `difference` are those of replica 0.
// - `step` (docs/record-protocol.md) has the timeline of one training step of a rank.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "base/fd.h"

namespace trainyard::experiments {

// The format of a yard: `v` of journal entries, run files and records.
inline constexpr int format_version = 1;

struct Record {
  std::string run;
  int attempt = 0;
  std::optional<int> rank;  // empty: record of the orchestrator
  std::int64_t seq = 0;
  // start, step, epoch, test, probe, message, end; leased, launched, submitted, signalled, exited, cause
  std::string type;
  std::string time;  // UTC, "2026-11-20T09:30:12.345Z"
  double elapsed_seconds = 0;
  nlohmann::json body;  // the whole object without `crc`
};

// `object` as one line without a newline, with `"crc":"…"` as the last member. Keeps the order of members.
std::string sealed_line(const nlohmann::ordered_json& object);

// The record of a line without its newline, or why it is not a record ("CRC is ab4be0be, should be …",
// "not JSON at byte 17").
struct ParsedLine {
  std::optional<Record> record;
  std::string problem;
};
ParsedLine parse_line(std::string_view line);

// The current time in the format of records: UTC with milliseconds.
std::string utc_now();

// Appends records to one record log: that of a rank, or of the orchestrator.
// - Each record is one `write`. `seq` counts from 0 without gaps, and continues after the last whole record.
// - `elapsed_seconds` is the time since construction on the monotonic clock.
class RecordWriter {
 public:
  // Opens `file` and continues after its last complete record. A torn last line is removed.
  // std::system_error with the file's name on failure.
  // `at_least`: the smallest number of the next record. The database may know more records than the file.
  RecordWriter(const std::filesystem::path& file, std::string run, int attempt, std::optional<int> rank,
               std::int64_t at_least = 0);

  // Appends a record of `type` with the members of `body` after the common ones.
  void append(const std::string& type, const nlohmann::ordered_json& body = nlohmann::ordered_json::object());
  void sync();  // fsync

 private:
  FileDescriptor fd_;
  std::filesystem::path file_;
  std::string run_;
  int attempt_;
  std::optional<int> rank_;
  std::int64_t next_seq_ = 0;
  std::chrono::steady_clock::time_point start_;
};

// Names of the files in the attempt directory.
std::string rank_records_name(int rank);   // "rank-0.records.jsonl"
std::string rank_log_name(int rank);       // "rank-0.log"
std::string rank_progress_name(int rank);  // "rank-0.progress"
inline constexpr const char* orchestrator_records_name = "orchestrator.records.jsonl";
inline constexpr const char* run_file_name = "run.json";

// Times of records are UTC: "2026-11-20T09:30:12.345Z". Texts in this form have the order of the times.
// Foreign programs may write any RFC 3339 time; a time without a zone is UTC.

using RecordTime = std::chrono::sys_time<std::chrono::milliseconds>;
std::optional<RecordTime> time_from(std::string_view text);  // empty if it is not a time

// `text` in this form: converted to UTC and cut to milliseconds. Empty if it is not a time.
std::optional<std::string> utc_time(std::string_view text);

}  // namespace trainyard::experiments
