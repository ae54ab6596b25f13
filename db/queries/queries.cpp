#include "db/queries/queries.h"

#include <SQLiteCpp/SQLiteCpp.h>
#include <fmt/format.h>

#include "base/error.h"
#include "base/json_members.h"
#include "db/database/statements.h"
#include "db/queries/axes.h"

namespace trainyard::db {

using nlohmann::json;

namespace {

std::vector<std::string> names_in(const std::string& list) {
  return list.empty() ? std::vector<std::string>() : json::parse(list).get<std::vector<std::string>>();
}

RunSummary summary_of(RowReader row) {
  RunSummary run;
  row.into(run.run_key, run.experiment, run.model, run.dataset, run.data_source, run.strategy, run.kind,
           run.replicas, run.stages, run.servers, run.tensor, run.seed, run.status, run.epochs,
           run.epochs_done, run.attempts, run.total_train_seconds, run.total_seconds, run.test_accuracy,
           run.circumstances_hash, run.failure, run.updated, run.in_latest_plan, run.model_title, run.task,
           run.dataset_title, run.files, run.command);
  run.loss_parts = names_in(row.text());
  run.axes = axes_from(row.text(), run.strategy);
  return run;
}

using Texts = std::vector<std::string>;

json json_or_null(const std::string& text) {
  return text.empty() ? json(nullptr) : json::parse(text);
}

// The elements of a list. Throws for other values, which iteration would treat as a list of one.
const json::array_t& list(const json& value) {
  return value.get_ref<const json::array_t&>();
}

// The command-line options that `resume` uses again. Throws if one has the wrong type.
json asked_from_json(const json& value) {
  const auto& object = value.get_ref<const json::object_t&>();
  for (const char* text : {"folder", "data", "as"})
    if (object.contains(text)) object.at(text).get_ref<const std::string&>();
  for (const char* texts : {"set", "where", "exclude_where"})
    if (object.contains(texts)) experiments::read_as<std::vector<std::string>>(object.at(texts));
  return value;
}

std::vector<experiments::Compare> comparisons_from_json(const json& value) {
  std::vector<experiments::Compare> comparisons;
  for (const json& one : list(value)) comparisons.push_back(experiments::compare_from_json(one));
  return comparisons;
}

Plan plan_of(RowReader row) {
  Plan plan;
  row.into(plan.experiment, plan.toml, plan.time, plan.file);
  json members;
  for (const char* name : {"compare", "varied", "expect", "published", "data_profiles", "metrics", "asked"})
    members[name] = json_or_null(row.text());
  read_plan_members(plan, members);
  return plan;
}

Attempt attempt_of(RowReader row) {
  Attempt attempt;
  row.into(attempt.attempt, attempt.status, attempt.directory, attempt.started, attempt.total_seconds,
           attempt.cause, attempt.times_problem, attempt.other_share, attempt.measured_epochs,
           attempt.disturbed_epochs);
  attempt.launch = json::parse(row.text());
  return attempt;
}

}  // namespace

std::vector<RunSummary> run_summaries(const Database& database, const std::string& experiment) {
  return read_rows(database,
                   R"sql(
      SELECT s.run_key, s.experiment, s.model, s.dataset, s.data_source, s.strategy, r.strategy_kind, s.replicas, s.stages, s.servers, s.tensor, s.seed,
             s.status, s.epochs, s.epochs_done, s.attempts, COALESCE(s.total_train_seconds, 0), COALESCE(s.total_seconds, 0),
             s.test_accuracy, s.circumstances_hash, s.failure, s.updated, s.in_latest_plan,
             json_extract(r.resolved, '$.declared.model.title'), json_extract(r.resolved, '$.declared.model.task'),
             json_extract(r.resolved, '$.declared.dataset.title'), json_extract(r.resolved, '$.strategy.files'),
             json_extract(r.resolved, '$.strategy.command', '$.strategy.env'),
             json_extract(r.resolved, '$.declared.model.loss_parts'),
             )sql" + std::string(axes_of_run) +
                       R"sql(
      FROM run_summary s
      JOIN run r ON r.run_key = s.run_key
      LEFT JOIN experiment_run m ON m.run_key = s.run_key AND m.experiment = s.experiment
      WHERE ?1 = '' OR s.experiment = ?1
      ORDER BY m.first_journal_id IS NULL, m.first_journal_id, m.position, s.run_key)sql",
                   summary_of, experiment);
}

std::vector<std::string> experiment_names(const Database& database) {
  return read_all<Texts>(database, "SELECT name FROM experiment ORDER BY journal_id");
}

std::vector<std::string> earlier_experiments_with_runs_of(const Database& database,
                                                          const std::string& experiment) {
  return read_all<Texts>(database, R"sql(
    WITH first_plan AS (
      SELECT experiment AS name, MIN(time) AS time FROM journal WHERE type = 'run' GROUP BY experiment)
    SELECT e.name FROM experiment e JOIN first_plan p ON p.name = e.name
    WHERE p.time < (SELECT time FROM first_plan WHERE name = ?1) AND EXISTS (
      SELECT 1 FROM experiment_run m JOIN experiment_run o ON o.run_key = m.run_key AND o.experiment = e.name
      WHERE m.experiment = ?1)
    ORDER BY e.journal_id)sql",
                         experiment);
}

Plan latest_plan(const Database& database, const std::string& experiment) {
  auto plans = read_rows(database, R"sql(
    SELECT e.name, j.toml, j.time, j.file, j.compare, j.varied, j.expect, j.extra -> '$.published',
           j.extra -> '$.data_profiles', j.extra -> '$.metrics', j.extra -> '$.asked'
    FROM experiment e JOIN journal j ON j.id = e.journal_id WHERE e.name = ?)sql",
                         plan_of, experiment);
  if (plans.empty())
    throw UserError("no experiment \"" + experiment + "\" in this yard",
                    "`trainyard status` lists the experiments");
  plans.front().keys = read_all<Texts>(database, R"sql(
    SELECT k.run_key
    FROM experiment e JOIN journal_key k ON k.journal_id = e.journal_id
    WHERE e.name = ? ORDER BY k.position)sql",
                                       experiment);
  return std::move(plans.front());
}

std::vector<PlanEntry> plan_history(const Database& database, const std::string& experiment) {
  const auto entry_of = [&](RowReader row) {
    const std::int64_t id = row.integer();
    PlanEntry entry{row.text(), row.text(), {}, {}, {}};
    if (const json compare = json_or_null(row.text()); !compare.is_null())
      entry.compare = comparisons_from_json(compare);
    entry.keys = read_all<Texts>(
        database, "SELECT run_key FROM journal_key WHERE journal_id = ? ORDER BY position", id);
    entry.strategies = read_all<Texts>(
        database, "SELECT strategy FROM journal_key WHERE journal_id = ? ORDER BY position", id);
    return entry;
  };
  return read_rows(database, R"sql(
    SELECT j.id, j.time, j.toml, j.compare FROM journal j
    WHERE j.type = 'run' AND j.experiment = ? ORDER BY j.id)sql",
                   entry_of, experiment);
}

Finished finished_runs(const Database& database, const std::map<std::string, std::string>& hash_by_key) {
  return translated(database.connection(), [&] {
    SQLite::Statement statement(database.connection(), R"sql(
      SELECT a.circumstances_hash = ?2, s.times_problem
      FROM run_state s JOIN attempt a ON a.run_key = s.run_key AND a.attempt = s.attempt
      WHERE s.run_key = ?1 AND s.status = 'finished')sql");
    Finished finished;
    for (const auto& [key, hash] : hash_by_key) {
      Bound rows(statement, key, hash);
      if (!rows.next()) continue;
      RowReader row(rows.row());
      (row.flag() ? finished.here : finished.elsewhere).push_back(key);
      if (std::string problem = row.text(); !problem.empty())
        finished.times_problems[key] = std::move(problem);
    }
    return finished;
  });
}

std::vector<std::string> keys_with_prefix(const Database& database, const std::string& prefix) {
  if (prefix == "last")
    return read_all<Texts>(database, "SELECT run_key FROM run_state ORDER BY updated DESC, run_key LIMIT 1");
  return read_all<Texts>(
      database, "SELECT run_key FROM run WHERE substr(run_key, 1, length(?1)) = ?1 ORDER BY run_key", prefix);
}

std::map<int, std::string> jobs_of_run(const Database& database, const std::string& run_key) {
  return read_all<std::map<int, std::string>>(database, R"sql(
    SELECT attempt, extra ->> '$.job' FROM event
    WHERE run_key = ? AND type = 'submitted' AND extra ->> '$.job' IS NOT NULL ORDER BY attempt, seq DESC)sql",
                                              run_key);
}

std::vector<Warning> warnings_of_run(const Database& database, const std::string& run_key) {
  const auto warning_of = [](RowReader row) {
    return Warning{static_cast<int>(row.integer()), row.integer(), row.text(), row.text()};
  };
  return read_rows(database, R"sql(
    SELECT attempt, rank, level, text FROM message
    WHERE run_key = ? AND level IN ('warning', 'error') ORDER BY attempt, rank, seq)sql",
                   warning_of, run_key);
}

int last_known_attempt(const Database& database, const std::string& run_key) {
  return read_all<std::vector<int>>(database, R"sql(
    SELECT COALESCE(MAX(n), 0) FROM (SELECT MAX(attempt) AS n FROM attempt WHERE run_key = ?1
                                     UNION ALL SELECT up_to_attempt FROM removed WHERE run_key = ?1))sql",
                                    run_key)
      .front();
}

std::vector<Attempt> attempts_of_run(const Database& database, const std::string& run_key) {
  return read_rows(database, R"sql(
    SELECT s.attempt, s.status, s.directory, s.created, COALESCE(s.total_seconds, 0), s.failure,
           COALESCE((SELECT r.times_problem FROM run_state r
                     WHERE r.run_key = s.run_key AND r.attempt = s.attempt), s.times_problem), s.other_share,
           (SELECT COUNT(e.other_share) FROM attempt_epoch e WHERE e.run_key = s.run_key AND e.attempt = s.attempt),
           (SELECT COUNT(*) FROM attempt_epoch e WHERE e.run_key = s.run_key AND e.attempt = s.attempt AND e.disturbed),
           a.launch
    FROM attempt_summary s JOIN attempt a ON a.run_key = s.run_key AND a.attempt = s.attempt
    WHERE s.run_key = ? ORDER BY s.attempt)sql",
                   attempt_of, run_key);
}

std::map<std::string, json> effective_launches(const Database& database, const std::string& experiment) {
  const auto texts = read_all<std::map<std::string, std::string>>(database, R"sql(
    SELECT m.run_key, a.launch
    FROM experiment_run m
    JOIN counted_attempt c ON c.run_key = m.run_key
    JOIN attempt a ON a.run_key = c.run_key AND a.attempt = c.attempt
    WHERE m.experiment = ?)sql",
                                                                  experiment);
  std::map<std::string, json> launches;
  for (const auto& [key, text] : texts) launches[key] = json::parse(text);
  return launches;
}

std::set<std::string> keys_with_status(const Database& database, const std::string& status) {
  return read_all<std::set<std::string>>(database, "SELECT run_key FROM run_state WHERE status = ?", status);
}

std::set<std::pair<std::string, int>> completed_attempts(const Database& database) {
  return read_all<std::set<std::pair<std::string, int>>>(database, R"sql(
    SELECT s.run_key, s.attempt
    FROM attempt_status s JOIN attempt a ON a.run_key = s.run_key AND a.attempt = s.attempt
    WHERE s.status IN ('failed', 'interrupted') OR (s.status = 'finished' AND a.world_size <=
      (SELECT COUNT(*) FROM event e
       WHERE e.run_key = s.run_key AND e.attempt = s.attempt AND e.type = 'exited')
      AND (NOT a.host_exclusive OR COALESCE(json_array_length(a.launch, '$.cores[0]'), 0) = 0
           OR EXISTS (SELECT 1 FROM event e WHERE e.run_key = s.run_key AND e.attempt = s.attempt
                      AND e.type = 'processor_use'))))sql");
}

std::map<std::string, double> median_run_seconds(const Database& database) {
  return read_all<std::map<std::string, double>>(database, R"sql(
    SELECT kind, AVG(total_seconds)
    FROM (SELECT kind, total_seconds, ROW_NUMBER() OVER (PARTITION BY kind ORDER BY total_seconds) AS place,
            COUNT(*) OVER (PARTITION BY kind) AS attempts
          FROM (SELECT r.model || ' ' || r.strategy || ' ' || r.epochs || ' ' || r.dataset || ' ' || COALESCE(
                    (SELECT value FROM axis_value v WHERE v.run_key = r.run_key AND v.name = 'train_samples'),
                    'all') AS kind, s.total_seconds
                FROM run_state s JOIN run r ON r.run_key = s.run_key
                WHERE s.status = 'finished' AND s.total_seconds IS NOT NULL))
    WHERE place IN ((attempts + 1) / 2, (attempts + 2) / 2)
    GROUP BY kind)sql");
}

void read_plan_members(Plan& plan, const json& entry) {
  const auto read = [&](const char* name, const auto& take) {
    const auto found = entry.find(name);
    if (found == entry.end() || found->is_null()) return;
    try {
      take(*found);
    } catch (const InternalError&) {
      throw;
    } catch (const std::exception& error) {
      throw InternalError(fmt::format("member {} of a journal entry: {}", name, error.what()));
    }
  };
  read("compare", [&](const json& from) { plan.compare = comparisons_from_json(from); });
  read("varied", [&](const json& from) { experiments::read(from, plan.varied); });
  read("expect", [&](const json& from) {
    for (const json& one : list(from)) plan.expect.push_back(experiments::expectation_from_json(one));
  });
  read("published", [&](const json& from) { plan.published = experiments::published_from_json(from); });
  read("data_profiles", [&](const json& from) {
    for (const json& one : list(from))
      plan.data_profiles.push_back(experiments::profiled_data_from_json(one));
  });
  read("metrics", [&](const json& from) { plan.metrics = experiments::own_metrics_from_json(from); });
  read("asked", [&](const json& from) { plan.asked = asked_from_json(from); });
}

}  // namespace trainyard::db
