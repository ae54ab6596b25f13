#include <optional>
#include <tuple>

#include "base/error.h"
#include "base/named_row.h"
#include "base/sha256.h"
#include "db/database/statements.h"
#include "db/ingest/rows.h"
#include "db/queries/queries.h"
#include "experiments/run/run.h"
#include "models/catalogue.h"

namespace trainyard::db {

using nlohmann::json;

namespace {

constexpr const char* insert_key =
    "INSERT INTO journal_key (journal_id, position, run_key, strategy) VALUES (?, ?, ?, ?)";

// The task of a model, declared in the file or from the catalogue. Empty if it is not known.
std::optional<std::string> task_of(const experiments::Run& run) {
  if (!run.declared.task.empty()) return run.declared.task;
  const auto* row = row_or_null(models::catalogue(), &models::Model::name, run.model);
  return row && run.declared.model_title.empty() ? std::optional(models::task_of(*row, run.data))
                                                 : std::nullopt;
}

}  // namespace

void JournalRows::take(const json& entry) try {
  const std::string hash = sha256_hex(json_text(entry));
  if (Bound(prepared_("SELECT 1 FROM journal WHERE sha256 = ?"), hash).next()) return;
  const std::int64_t id = insert(entry, hash);
  const std::string type = entry.at("type").get<std::string>();
  if (Plan readable; type == "run") read_plan_members(readable, entry);
  if (type == "run") plan(id, entry);
  if (type == "rm") remove(id, entry);
  if (type == "rm" || type == "retrain") insert_earlier_results(entry);
} catch (const json::exception& error) {
  throw InternalError(std::string("not a journal entry: ") + error.what());
} catch (const Unreadable& error) {
  throw InternalError(std::string("not a journal entry: ") + error.what());
}

std::int64_t JournalRows::insert(const json& entry, const std::string& hash) {
  Members members(entry);
  for (const char* in_rows_of_their_own : {"v", "keys", "strategies", "runs", "attempts", "results"})
    members.any(in_rows_of_their_own);
  execute(prepared_(R"sql(
        INSERT INTO journal (sha256, type, time, experiment, file, toml, compare, varied, data_seed, expect, extra)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?))sql"),
          std::tuple{hash, members.required_text("type"), members.required_text("time"),
                     members.text("experiment"), members.text("file"), members.text("toml"),
                     members.any("compare"), members.any("varied"), members.integer("data_seed"),
                     members.any("expect"), members.rest()});
  return prepared_.last_inserted_row();
}

void JournalRows::plan(std::int64_t id, const json& entry) {
  const std::string experiment = entry.at("experiment").get<std::string>();
  execute(prepared_(R"sql(
        INSERT INTO experiment (name, journal_id) VALUES (?, ?)
        ON CONFLICT (name) DO UPDATE SET journal_id = excluded.journal_id)sql"),
          experiment, id);
  std::int64_t position = 0;
  for (const json& element : entry.at("keys")) {
    const std::string key = element.get<std::string>();
    const std::string strategy = entry.at("strategies").at(key).get<std::string>();
    runs_.put(key, entry.at("runs").at(key), RunOrigin::journal);
    execute(prepared_(insert_key), id, position, key, strategy);
    execute(prepared_(R"sql(
        INSERT INTO experiment_run (run_key, experiment, strategy, first_journal_id, position, latest_journal_id)
        VALUES (?1, ?2, ?3, ?4, ?5, ?4)
        ON CONFLICT (run_key, experiment) DO UPDATE SET
          strategy = excluded.strategy, latest_journal_id = excluded.latest_journal_id)sql"),
            key, experiment, strategy, id, position);
    ++position;
  }
}

void JournalRows::remove(std::int64_t id, const json& entry) {
  const std::string time = entry.at("time").get<std::string>();
  std::int64_t position = 0;
  for (const json& element : entry.at("keys")) {
    const std::string key = element.get<std::string>();
    execute(prepared_(insert_key), id, position++, key, nullptr);
    execute(prepared_(R"sql(
        INSERT INTO removed (run_key, time, up_to_attempt) VALUES (?, ?, ?)
        ON CONFLICT (run_key) DO UPDATE SET time = MAX(time, excluded.time),
          up_to_attempt = MAX(up_to_attempt, excluded.up_to_attempt))sql"),
            key, time, entry.at("attempts").at(key).get<std::int64_t>());
    runs_.remove(key);
  }
}

void JournalRows::insert_earlier_results(const json& entry) {
  const auto results = entry.find("results");
  if (results == entry.end()) return;
  for (const auto& [key, result] : results->items())
    execute(prepared_(R"sql(
        INSERT OR IGNORE INTO earlier_result (run_key, attempt, launched, times_problem, "values")
        VALUES (?, ?, ?, ?, ?))sql"),
            key, result.at("attempt").get<std::int64_t>(), result.at("launched").get<std::string>(),
            result.at("times_problem").get<std::string>(), json_text(result.at("values")));
}

void RunRows::put(const std::string& key, const json& resolved, RunOrigin origin) {
  const experiments::Run run = experiments::run_from_json(resolved);
  if (const std::string actual = experiments::run_key(run); actual != key)
    throw InternalError("the work of run " + key + " has the key " + actual);
  const int changes =
      execute(prepared_(R"sql(
        INSERT INTO run (run_key, model, dataset, data_source, strategy, strategy_kind, replicas, stages, servers, tensor, seed,
                         epochs, resolved, from_journal, task)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
        ON CONFLICT (run_key) DO UPDATE SET
          model = excluded.model, dataset = excluded.dataset, data_source = excluded.data_source,
          strategy = excluded.strategy, strategy_kind = excluded.strategy_kind, replicas = excluded.replicas,
          stages = excluded.stages, servers = excluded.servers, tensor = excluded.tensor, seed = excluded.seed, epochs = excluded.epochs,
          resolved = excluded.resolved, from_journal = excluded.from_journal, task = excluded.task
        WHERE excluded.from_journal > from_journal
           OR (excluded.from_journal = from_journal AND excluded.resolved <> resolved))sql"),
              key, run.model, run.data.dataset, run.data.source, run.strategy.name, run.strategy.kind,
              run.strategy.replicas, run.strategy.stages, run.strategy.servers, run.strategy.tensor, run.seed,
              run.epochs, json_text(resolved), static_cast<int>(origin), task_of(run));
  if (changes == 0) return;
  execute(prepared_("DELETE FROM axis_value WHERE run_key = ?"), key);
  for (const auto& [name, value] : experiments::values_by_name(run))
    execute(prepared_(R"sql(
        INSERT INTO axis_value (run_key, name, value, json) VALUES (?1, ?2, ?3 ->> '$', ?3))sql"),
            key, name, json_text(experiments::to_json(value)));
}

void RunRows::remove(const std::string& key) {
  execute(prepared_("DELETE FROM attempt WHERE run_key = ?"), key);
  execute(prepared_(R"sql(
        DELETE FROM run WHERE run_key = ?1
          AND NOT EXISTS (SELECT 1 FROM experiment_run m WHERE m.run_key = ?1))sql"),
          key);
}

Accepted AttemptRows::take(const json& run_json) {
  const experiments::Launch launch = experiments::launch_from_json(run_json);
  if (launch.attempt < 1) throw InternalError("not the JSON of a launch: attempts count from 1");
  if (Bound(prepared_("SELECT 1 FROM attempt WHERE run_key = ? AND attempt = ?"), launch.key, launch.attempt)
          .next())
    return Accepted::known;
  if (Bound(prepared_(R"sql(
        SELECT 1 FROM removed WHERE run_key = ? AND up_to_attempt >= ?)sql"),
            launch.key, launch.attempt)
          .next())
    return Accepted::refused;
  runs_.put(launch.key, run_json.at("work"), RunOrigin::launch);
  insert(launch, run_json);
  return Accepted::taken;
}

void AttemptRows::insert(const experiments::Launch& launch, const json& run_json) try {
  Members members(run_json);
  const std::string hash =
      members.text("circumstances_hash").value_or(experiments::circumstances_hash(launch.circumstances));
  execute(prepared_(R"sql(
        INSERT INTO attempt (run_key, attempt, experiment, directory, created, world_size, host_exclusive,
                             devices_shared, circumstances_hash, circumstances, host, processor, resumes_attempt,
                             resumes_after_epoch, launch)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?))sql"),
          launch.key, launch.attempt, launch.experiment, launch.records.string(), launch.created,
          launch.strategy().world_size(), launch.host_exclusive, launch.devices_shared, hash,
          run_json.at("circumstances"), launch.circumstances.host, launch.circumstances.processor,
          members.integer("resumes_attempt"), members.integer("resumes_after_epoch"), run_json);
} catch (const Unreadable& error) {
  throw InternalError(std::string("not the JSON of a launch: ") + error.what());
}

}  // namespace trainyard::db
