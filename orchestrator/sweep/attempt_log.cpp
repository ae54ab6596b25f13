#include "orchestrator/sweep/attempt_log.h"

#include <utility>

namespace trainyard::orchestrator {

AttemptLog::AttemptLog(const AttemptPlace& place, std::string label, Status& status, std::int64_t next_number)
    : label_(std::move(label)),
      names_{{"run", place.key}, {"attempt", place.attempt}, {"label", label_}},
      status_(status),
      records_(place.directory / experiments::orchestrator_records_name, place.key, place.attempt,
               std::nullopt, next_number) {}

void AttemptLog::write(log::Level level, const char* event, const log::Fields& more) const {
  log::Fields fields = names_;
  fields.insert(fields.end(), more.begin(), more.end());
  log::write(level, event, fields);
}

double AttemptLog::seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - started_).count();
}

}  // namespace trainyard::orchestrator
