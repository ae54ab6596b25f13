#include "db/ingest/attempt_rows.h"

#include "base/error.h"
#include "db/database/binding.h"
#include "db/ingest/ingest.h"
#include "db/ingest/members.h"

namespace trainyard::db {

using nlohmann::json;

AttemptRows::AttemptRows(SQLite::Database& connection, RunRows& runs)
    : runs_(runs),
      find_(connection, "SELECT 1 FROM attempt WHERE run_key = ? AND attempt = ?"),
      find_removed_(connection, R"sql(
        SELECT 1 FROM removed WHERE run_key = ?1 AND IIF(up_to_attempt IS NULL, time >= ?2, up_to_attempt >= ?3))sql"),
      insert_(connection, R"sql(
        INSERT INTO attempt (run_key, attempt, experiment, directory, created, world_size, host_exclusive,
                             devices_shared, circumstances_hash, circumstances, host, processor, resumes_attempt,
                             resumes_after_epoch, launch)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?))sql") {}

Accepted AttemptRows::take(const json& run_json) {
  const experiments::Launch launch = experiments::launch_from_json(run_json);
  if (launch.attempt < 1) throw InternalError("not the JSON of a launch: attempts count from 1");
  if (known(launch)) return Accepted::known;
  if (was_removed(launch)) return Accepted::refused;
  runs_.put(launch.key, run_json.at("work"), RunOrigin::launch);
  insert(launch, run_json);
  return Accepted::taken;
}

bool AttemptRows::known(const experiments::Launch& launch) {
  return Bound(find_, launch.key, launch.attempt).next();
}

bool AttemptRows::was_removed(const experiments::Launch& launch) {
  return Bound(find_removed_, launch.key, launch.created, launch.attempt).next();
}

void AttemptRows::insert(const experiments::Launch& launch, const json& run_json) try {
  Members members(run_json);
  const std::string hash =
      members.text("circumstances_hash").value_or(experiments::circumstances_hash(launch.circumstances));
  const auto resumes_attempt = members.integer("resumes_attempt");
  const auto resumes_after_epoch = members.integer("resumes_after_epoch");
  execute(insert_, launch.key, launch.attempt, launch.experiment, launch.records.string(), launch.created,
          launch.run.strategy.world_size(), launch.host_exclusive, launch.devices_shared, hash,
          run_json.at("circumstances"), launch.circumstances.host, launch.circumstances.processor,
          resumes_attempt, resumes_after_epoch, run_json);
} catch (const Unreadable& error) {
  throw InternalError(std::string("not the JSON of a launch: ") + error.what());
}

}  // namespace trainyard::db
