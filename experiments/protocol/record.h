// Records: their contract, the writer that appends them, and their times.
//
// The record contract: one JSON object a line, sealed with a CRC-32C. Runner and orchestrator append records
// to the spools of an attempt, the orchestrator tails them, `db` ingests them.
//
// Members of each: `v, run, attempt, rank, seq, type, time, elapsed_seconds`, then those of its type, then
// `crc` (optional when reading, for foreign programs). `rank` is absent in the orchestrator's own file.
//
// `probe` (runner/parity/parity_check.h) has `step, loss, reference_loss, gradient_norm` and `layers`, a list
// of
// `{path, gradient_norm, difference, parameter_hash}` in the order of the layers; `reference_loss` and
// `difference` are those of replica 0 alone.
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

inline constexpr int record_version = 1;

struct Record {
  std::string run;
  int attempt = 0;
  std::optional<int> rank;  // empty: the orchestrator's
  std::int64_t seq = 0;
  // start, epoch, test, probe, message, end; leased, launched, submitted, signalled, exited, cause
  std::string type;
  std::string time;  // UTC, "2026-11-20T09:30:12.345Z"
  double elapsed_seconds = 0;
  nlohmann::json body;  // the whole object without `crc`
};

// `object` in its own order as one line without newline, `,"crc":"…"` added as the last member.
std::string sealed_line(const nlohmann::ordered_json& object);

// The record of a line (no newline), or why it is none ("CRC is ab4be0be, should be …", "not JSON at byte
// 17").
struct ParsedLine {
  std::optional<Record> record;
  std::string problem;
};
ParsedLine parse_line(std::string_view line);

// Now, as records carry it: UTC with milliseconds.
std::string utc_now();

// Appends records to one spool: one `write` a record, `seq` from 0 without gaps, `elapsed_seconds` on the
// monotonic clock since construction. Used by a rank for its own spool and by the orchestrator for its own.

class RecordWriter {
 public:
  // Opens `spool` for appending and goes on after its last whole record; a torn last line is cut off first.
  // std::system_error with the file's name where that fails.
  RecordWriter(const std::filesystem::path& spool, std::string run, int attempt, std::optional<int> rank);

  // Appends a record of `type` with the members of `body` after the common ones.
  void append(const std::string& type, const nlohmann::ordered_json& body = nlohmann::ordered_json::object());
  void sync();  // fsync

 private:
  FileDescriptor fd_;
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

// Times as records carry them: UTC, "2026-11-20T09:30:12.345Z". Programs of others may write any time of RFC
// 3339, and one without a zone, which is UTC; all of them become that one form, whose order as a text is that
// of the times. Used where records are read.

std::string utc_text(std::chrono::sys_time<std::chrono::milliseconds> time);

// `text` in that form: converted from its offset, cut to milliseconds. Nothing where it is no time.
std::optional<std::string> utc_time(std::string_view text);

}  // namespace trainyard::experiments
