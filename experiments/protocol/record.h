// The record contract: one JSON object a line, sealed with a CRC-32C. Runner and orchestrator append records
// to the spools of an attempt, the orchestrator tails them, `db` ingests them.
//
// Members of each: `v, run, attempt, rank, seq, type, time, elapsed_seconds`, then those of its type, then
// `crc` (optional when reading, for foreign programs). `rank` is absent in the orchestrator's own file.
//
// `probe` (runner/parity/parity_gate.h) has `step, loss, reference_loss, gradient_norm` and `layers`, a list
// of
// `{path, gradient_norm, difference, parameter_hash}` in the order of the layers; `reference_loss` and
// `difference` are those of replica 0 alone.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

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

}  // namespace trainyard::experiments
