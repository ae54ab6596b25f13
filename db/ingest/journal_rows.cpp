#include "db/ingest/journal_rows.h"

#include <optional>

#include "base/error.h"
#include "base/sha256.h"
#include "db/database/binding.h"
#include "db/ingest/members.h"
#include "db/queries/plan_members.h"

namespace trainyard::db {

using nlohmann::json;

JournalRows::JournalRows(SQLite::Database& connection, RunRows& runs)
    : connection_(connection),
      runs_(runs),
      find_(connection, "SELECT 1 FROM journal WHERE sha256 = ?"),
      insert_(connection, R"sql(
        INSERT INTO journal (sha256, type, time, experiment, file, toml, compare, varied, data_seed, expect, extra)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?))sql"),
      insert_key_(connection,
                  "INSERT INTO journal_key (journal_id, position, run_key, strategy) VALUES (?, ?, ?, ?)"),
      put_experiment_(connection, R"sql(
        INSERT INTO experiment (name, journal_id) VALUES (?, ?)
        ON CONFLICT (name) DO UPDATE SET journal_id = excluded.journal_id)sql"),
      put_experiment_run_(connection, R"sql(
        INSERT INTO experiment_run (run_key, experiment, strategy, first_journal_id, position, latest_journal_id)
        VALUES (?1, ?2, ?3, ?4, ?5, ?4)
        ON CONFLICT (run_key, experiment) DO UPDATE SET
          strategy = excluded.strategy, latest_journal_id = excluded.latest_journal_id)sql"),
      put_removed_(connection, R"sql(
        INSERT INTO removed (run_key, time, up_to_attempt) VALUES (?, ?, ?)
        ON CONFLICT (run_key) DO UPDATE SET time = MAX(time, excluded.time),
          up_to_attempt = NULLIF(MAX(COALESCE(up_to_attempt, 0), COALESCE(excluded.up_to_attempt, 0)), 0))sql") {
}

void JournalRows::take(const json& entry) try {
  const std::string hash = models::sha256_hex(json_text(entry));
  if (known(hash)) return;
  const std::int64_t id = insert(entry, hash);
  const std::string type = entry.at("type").get<std::string>();
  if (type == "run") require_readable_plan(entry);
  if (type == "run") plan(id, entry);
  if (type == "rm") remove(id, entry);
} catch (const json::exception& error) {
  throw InternalError(std::string("not a journal entry: ") + error.what());
} catch (const Unreadable& error) {
  throw InternalError(std::string("not a journal entry: ") + error.what());
}

bool JournalRows::known(const std::string& hash) {
  return Bound(find_, hash).next();
}

std::int64_t JournalRows::insert(const json& entry, const std::string& hash) {
  Members members(entry);
  const std::string type = members.required_text("type");
  const std::string time = members.required_text("time");
  const auto experiment = members.text("experiment");
  const auto file = members.text("file");
  const auto toml = members.text("toml");
  const json compare = members.any("compare");
  const json varied = members.any("varied");
  const auto data_seed = members.integer("data_seed");
  const json expect = members.any("expect");
  for (const char* in_rows_of_their_own : {"v", "keys", "strategies", "runs", "attempts"})
    members.any(in_rows_of_their_own);
  execute(insert_, hash, type, time, experiment, file, toml, compare, varied, data_seed, expect,
          members.rest());
  return connection_.getLastInsertRowid();
}

void JournalRows::plan(std::int64_t id, const json& entry) {
  const std::string experiment = entry.at("experiment").get<std::string>();
  execute(put_experiment_, experiment, id);
  std::int64_t position = 0;
  for (const json& element : entry.at("keys")) {
    const std::string key = element.get<std::string>();
    const std::string strategy = entry.at("strategies").at(key).get<std::string>();
    runs_.put(key, entry.at("runs").at(key), RunOrigin::journal);
    execute(insert_key_, id, position, key, strategy);
    execute(put_experiment_run_, key, experiment, strategy, id, position);
    ++position;
  }
}

namespace {

// How many attempts of the run the entry removes; nothing in entries of before they said so.
std::optional<std::int64_t> last_attempt(const json& entry, const std::string& key) {
  const auto attempts = entry.find("attempts");
  if (attempts == entry.end()) return std::nullopt;
  return attempts->at(key).get<std::int64_t>();
}

}  // namespace

void JournalRows::remove(std::int64_t id, const json& entry) {
  const std::string time = entry.at("time").get<std::string>();
  std::int64_t position = 0;
  for (const json& element : entry.at("keys")) {
    const std::string key = element.get<std::string>();
    execute(insert_key_, id, position++, key, nullptr);
    execute(put_removed_, key, time, last_attempt(entry, key));
    runs_.remove(key);
  }
}

}  // namespace trainyard::db
