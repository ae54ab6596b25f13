// Events of an attempt: appended to its orchestrator.records.jsonl, logged, and shown to the user. The
// collector ingests the records.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/log.h"
#include "experiments/protocol/record.h"
#include "orchestrator/plan/status.h"
#include "orchestrator/sweep/collector.h"

namespace trainyard::orchestrator {

class AttemptLog {
 public:
  // Opens the file of records. `label`: of the run. `next_number`: of the next record in the database.
  AttemptLog(const AttemptPlace& place, std::string label, Status& status, std::int64_t next_number)
      : label_(std::move(label)),
        names_{{"run", place.key}, {"attempt", place.attempt}, {"label", label_}},
        status_(status),
        records_(place.directory / experiments::orchestrator_records_name, place.key, place.attempt,
                 std::nullopt, next_number) {}

  void record(const std::string& type, const nlohmann::ordered_json& body) { records_.append(type, body); }
  void sync() { records_.sync(); }  // all records so far are durable
  void message(const std::string& text) const { status_.message(label_ + ": " + text); }
  void write(log::Level level, const char* event, const log::Fields& more = {}) const {  // to trainyard.log
    log::Fields fields = names_;
    fields.insert(fields.end(), more.begin(), more.end());
    log::write(level, event, fields);
  }
  double seconds() const {  // since construction
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - started_).count();
  }

 private:
  std::string label_;
  log::Fields names_;  // run, attempt, label
  Status& status_;
  experiments::RecordWriter records_;
  std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
};

}  // namespace trainyard::orchestrator
