#include <algorithm>
#include <array>
#include <cctype>
#include <iterator>
#include <string_view>
#include <utility>

#include <SQLiteCpp/SQLiteCpp.h>
#include <SQLiteCpp/Savepoint.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "db/database/metric_sql.h"
#include "db/database/schema.h"
#include "db/database/statements.h"

namespace trainyard::db {

namespace {

// Finished if every rank has recorded it in `end`, unless the records are impossible
// (db/database/record_faults.h). Otherwise the outcome of the first `cause`.
constexpr const char* attempt_status = R"sql(
CREATE VIEW attempt_status AS
SELECT run_key, attempt,
  CASE
    WHEN EXISTS (SELECT 1 FROM attempt_fault f WHERE f.run_key = a.run_key AND f.attempt = a.attempt) THEN 'failed'
    WHEN (SELECT COUNT(*) FROM process p
          WHERE p.run_key = a.run_key AND p.attempt = a.attempt AND p.status = 'finished') = a.world_size
      THEN 'finished'
    ELSE COALESCE(
      (SELECT IIF(e.outcome = 'interrupted', 'interrupted', 'failed') FROM event e
       WHERE e.run_key = a.run_key AND e.attempt = a.attempt AND e.type = 'cause' ORDER BY e.seq LIMIT 1),
      'running')
  END AS status
FROM attempt a
)sql";

constexpr const char* attempt_summary = R"sql(
CREATE VIEW attempt_summary AS
SELECT a.run_key, a.attempt, s.status, a.created,
  (SELECT MAX(p.total_seconds) FROM process p
   WHERE p.run_key = a.run_key AND p.attempt = a.attempt) AS total_seconds,
  CASE WHEN s.status IN ('failed', 'interrupted') THEN COALESCE(
    (SELECT NULLIF(e.error, '') FROM event e
     WHERE e.run_key = a.run_key AND e.attempt = a.attempt AND e.type = 'cause' ORDER BY e.seq LIMIT 1),
    (SELECT f.error FROM attempt_fault f WHERE f.run_key = a.run_key AND f.attempt = a.attempt),
    (SELECT p.error FROM process p
     WHERE p.run_key = a.run_key AND p.attempt = a.attempt AND p.error <> '' ORDER BY p.ended, p.rank LIMIT 1))
  END AS failure,
  (SELECT MAX(o.last_time) FROM record_log o
   WHERE o.run_key = a.run_key AND o.attempt = a.attempt) AS last_record,
  a.host, a.processor, a.world_size, a.times_count, a.circumstances_hash, a.directory, a.times_problem,
  a.other_share, a.others_limit
FROM attempt a JOIN attempt_status s ON s.run_key = a.run_key AND s.attempt = a.attempt
)sql";

// The effective attempt: the latest finished one, else the latest.
constexpr const char* counted_attempt = R"sql(
CREATE VIEW counted_attempt AS SELECT run_key, attempt, status FROM run_state
)sql";

// The effective attempt and those that it resumes. Each contributes the epochs after_epoch + 1 … up_to_epoch.
constexpr const char* run_chain = R"sql(
CREATE VIEW run_chain AS
SELECT k.run_key, s.status, k.attempt, a.world_size, k.after_epoch, k.up_to_epoch
FROM run_state s
JOIN attempt_chain k ON k.run_key = s.run_key
JOIN attempt a ON a.run_key = k.run_key AND a.attempt = k.attempt
)sql";

// While a run is not finished, only epochs that all ranks have written. CROSS JOIN makes SQLite read runs
// first. Without statistics it would read epochs first.
std::string run_epoch() {
  return "CREATE VIEW run_epoch AS\n"
         "SELECT e.run_key, e.epoch, e.attempt, e.train_seconds, e.validation_seconds" +
         each_recorded(epoch_phases, "e.{phase}_{name}") +
         R"sql(, e.energy_joules, e.peak_device_bytes, e.processor_seconds,
  s.times_count AND NOT e.disturbed AS times_count, e.other_share
FROM run_state s
CROSS JOIN attempt_chain k ON k.run_key = s.run_key
CROSS JOIN attempt a ON a.run_key = k.run_key AND a.attempt = k.attempt
CROSS JOIN attempt_epoch e
  ON e.run_key = k.run_key AND e.attempt = k.attempt AND e.epoch > k.after_epoch AND e.epoch <= k.up_to_epoch
WHERE s.status = 'finished' OR e.ranks >= a.world_size)sql";
}

constexpr const char* run_in_experiment = R"sql(
CREATE VIEW run_in_experiment AS
SELECT r.run_key, m.experiment, r.model, COALESCE(m.strategy, r.strategy) AS strategy, r.seed
FROM run r LEFT JOIN experiment_run m ON m.run_key = r.run_key
)sql";

constexpr const char* run_summary = R"sql(
CREATE VIEW run_summary AS
SELECT r.run_key, m.experiment, r.model, COALESCE(m.strategy, r.strategy) AS strategy, r.seed,
  COALESCE(s.status, 'planned') AS status, r.epochs, s.total_train_seconds,
  COALESCE(s.epochs_done, 0) AS epochs_done, COALESCE(s.attempts, 0) AS attempts,
  r.dataset, r.data_source, r.replicas, r.stages, r.servers, r.tensor, s.total_seconds, s.test_accuracy,
  s.times_count, a.circumstances_hash, s.failure,
  COALESCE(s.updated, (SELECT j.time FROM journal j WHERE j.id = m.latest_journal_id)) AS updated,
  m.latest_journal_id = n.journal_id AS in_latest_plan, s.energy_joules, s.peak_device_bytes, s.times_problem,
  s.other_share, s.others_limit, s.timed_epochs, s.disturbed_epochs
FROM run r
LEFT JOIN experiment_run m ON m.run_key = r.run_key
LEFT JOIN experiment n ON n.name = m.experiment
LEFT JOIN run_state s ON s.run_key = r.run_key
LEFT JOIN attempt a ON a.run_key = s.run_key AND a.attempt = s.attempt
)sql";

// Σ sum / Σ weight over ranks. NULL if the sum of a rank is not a number.
constexpr const char* epoch_mean = R"sql(
CREATE VIEW epoch_mean AS
SELECT e.run_key, e.epoch, e.attempt, m.phase, m.name,
  IIF(COUNT(m.sum) = COUNT(*), SUM(m.sum) / NULLIF(SUM(m.weight), 0), NULL) AS value, SUM(m.weight) AS weight
FROM run_epoch e JOIN metric m ON m.run_key = e.run_key AND m.attempt = e.attempt AND m.epoch = e.epoch
GROUP BY e.run_key, e.epoch, e.attempt, m.phase, m.name
)sql";

std::string epoch_average() {
  return "CREATE VIEW epoch_average AS\n"
         "SELECT r.run_key, r.experiment, r.model, r.strategy, r.seed, e.epoch" +
         each_mean(epoch_phases, "e.{phase}_{name}") +
         ", e.train_seconds, e.validation_seconds, e.energy_joules, e.peak_device_bytes, "
         "e.processor_seconds, e.times_count" +
         each_loss_part(epoch_phases, "e.{phase}_{name}") +
         ", e.other_share\nFROM run_in_experiment r CROSS JOIN run_epoch e ON e.run_key = r.run_key";
}

std::string epoch_rank() {
  static constexpr const char* of_rank = R"sql(
  (SELECT m.sum / NULLIF(m.weight, 0) FROM metric m WHERE m.run_key = e.run_key AND m.attempt = e.attempt
     AND m.epoch = e.epoch AND m.phase = '{phase}' AND m.name = '{record}' AND m.rank = e.rank) AS {phase}_{name})sql";
  return "CREATE VIEW epoch_rank AS\n"
         "SELECT r.run_key, r.experiment, r.model, r.strategy, r.seed, e.rank, e.epoch" +
         each_mean(epoch_phases, of_rank) + R"sql(,
  e.train_seconds, e.validation_seconds, e.energy_joules, e.energy_device, e.peak_device_bytes, e.processor_seconds)sql" +
         each_loss_part(epoch_phases, of_rank) + R"sql(
FROM run_in_experiment r
CROSS JOIN run_chain c ON c.run_key = r.run_key
CROSS JOIN epoch e
  ON e.run_key = c.run_key AND e.attempt = c.attempt AND e.epoch > c.after_epoch AND e.epoch <= c.up_to_epoch)sql";
}

// A replica is `stages` · `tensor` consecutive ranks. Only one of its last stage writes metrics. Its times are those of the
// slowest rank. Servers follow the replicas and belong to none.
std::string epoch_replica() {
  return "CREATE VIEW epoch_replica AS\n"
         "SELECT e.run_key, e.experiment, e.model, e.strategy, e.seed, e.rank / (r.stages * r.tensor) AS "
         "replica, "
         "e.epoch" +
         each_mean(epoch_phases, "MAX(e.{phase}_{name}) AS {phase}_{name}") + R"sql(,
  MAX(e.train_seconds) AS train_seconds, MAX(e.validation_seconds) AS validation_seconds,
  MAX(e.processor_seconds) AS processor_seconds)sql" +
         each_loss_part(epoch_phases, "MAX(e.{phase}_{name}) AS {phase}_{name}") + R"sql(
FROM epoch_rank e JOIN run r ON r.run_key = e.run_key AND e.rank < r.replicas * r.stages * r.tensor
GROUP BY e.run_key, e.experiment, e.rank / (r.stages * r.tensor), e.epoch
HAVING COUNT(*) = r.stages * r.tensor)sql";
}

// Epochs whose times are compared (db/database/run_states.cpp).
constexpr const char* timed_epoch = R"sql(
CREATE VIEW timed_epoch AS
SELECT e.run_key, e.epoch, e.attempt, e.train_seconds
FROM run_state s
CROSS JOIN attempt_chain k ON k.run_key = s.run_key
CROSS JOIN attempt a ON a.run_key = k.run_key AND a.attempt = k.attempt
CROSS JOIN attempt_epoch e
  ON e.run_key = k.run_key AND e.attempt = k.attempt AND e.epoch > k.after_epoch AND e.epoch <= k.up_to_epoch
WHERE (s.status = 'finished' OR e.ranks >= a.world_size) AND e.train_seconds IS NOT NULL
  AND (s.first_epochs_timed OR e.epoch <> k.after_epoch + 1) AND (s.disturbed_epochs = 0 OR NOT e.disturbed)
)sql";

constexpr const char* epoch_train_seconds = R"sql(
CREATE VIEW epoch_train_seconds AS
SELECT run_key, epoch_train_seconds FROM run_state WHERE epoch_train_seconds IS NOT NULL
)sql";

// Without the `+` SQLite reads all epochs of the attempt for each epoch, because they are in the order of the
// groups.
std::string time_parts() {
  return "CREATE VIEW time_parts AS\n"
         "SELECT r.run_key, r.experiment, r.model, r.strategy, r.seed" +
         each_part("AVG(e.{part}_seconds) AS {part}_seconds") + R"sql(
FROM run_in_experiment r
CROSS JOIN timed_epoch t ON t.run_key = r.run_key
CROSS JOIN run q ON q.run_key = r.run_key
CROSS JOIN epoch e ON e.run_key = t.run_key AND e.attempt = t.attempt AND e.epoch = +t.epoch
  AND e.rank < q.replicas * q.stages * q.tensor
GROUP BY r.run_key, r.experiment)sql";
}

// Clocks of different hosts are not compared, so times are since the first event on the host.
constexpr const char* step_event = R"sql(
CREATE VIEW step_event AS
SELECT s.run_key, s.attempt, s.epoch, s.step, s.rank, p.replica, p.stage, p.host, s.part, s.micro_batch,
  s.begin_clock - MIN(s.begin_clock) OVER same_clock AS begin_seconds,
  s.end_clock - MIN(s.begin_clock) OVER same_clock AS end_seconds
FROM attempt_chain k
CROSS JOIN step_part s
  ON s.run_key = k.run_key AND s.attempt = k.attempt AND s.epoch > k.after_epoch AND s.epoch <= k.up_to_epoch
JOIN process p ON p.run_key = s.run_key AND p.attempt = s.attempt AND p.rank = s.rank
WINDOW same_clock AS (PARTITION BY s.run_key, s.attempt, s.epoch, s.step, p.host)
)sql";

constexpr const char* run_axis = R"sql(
CREATE VIEW run_axis AS SELECT run_key, name, value FROM axis_value
)sql";

// SELECT of the columns `first` of the view `base`, the columns derived from each phase's loss, and columns
// that were added later. Existing columns keep their position.
std::string select_with_derived(const std::string& base, const std::string& first, Phases phases,
                                const std::string& more_columns = "", const std::string& more_joins = "") {
  return fmt::format("SELECT {}{}{}\nFROM {} v JOIN run r ON r.run_key = v.run_key{}", first,
                     each_of_loss(phases), more_columns, base, more_joins);
}

std::string task_epoch_average() {
  return "CREATE VIEW task_epoch_average AS\n" +
         select_with_derived("epoch_average",
                             "v.run_key, v.experiment, v.model, v.strategy, v.seed, v.epoch" +
                                 each_mean(epoch_phases, "v.{phase}_{name}") +
                                 ", v.train_seconds, v.validation_seconds",
                             epoch_phases,
                             ", v.energy_joules, v.peak_device_bytes, v.processor_seconds, v.times_count" +
                                 each_loss_part(epoch_phases, "v.{phase}_{name}"));
}

std::string task_epoch_replica() {
  return "CREATE VIEW task_epoch_replica AS\n" + select_with_derived("epoch_replica", "v.*", epoch_phases);
}

// `more_columns` are columns of `v`, a row of final_metrics. Each begins with a comma.
std::string task_final_metrics(const std::string& more_columns) {
  return "CREATE VIEW task_final_metrics AS\n" +
         select_with_derived("final_metrics",
                             "v.run_key, v.experiment, v.model, v.strategy, v.seed" +
                                 each_mean(all_phases, "v.{phase}_{name}") +
                                 ", v.epoch_train_seconds, v.total_train_seconds, v.total_validation_seconds",
                             all_phases,
                             fmt::format("{}, v.epoch_energy_joules, v.peak_device_bytes, "
                                         "v.epoch_processor_seconds, v.times_count, v.times_problem{}{}",
                                         each_of_sums("f.test_{name}"),
                                         each_loss_part(all_phases, "f.{phase}_{name}"), more_columns),
                             " JOIN run_final f ON f.run_key = v.run_key");
}

// Columns for the axes that vary.

// The columns of final_metrics and task_final_metrics together: a column has one name in both.
std::vector<std::string> fixed_columns() {
  std::vector<std::string> names{"run_key", "experiment",        "model",       "strategy",     "seed",
                                 "variant", "peak_device_bytes", "times_count", "times_problem"};
  for (const models::Cost& cost : models::all_costs) names.emplace_back(cost.final_column);
  for (const models::Metric& metric : models::all_metrics)
    for (const std::string_view phase : metric.phases())
      names.push_back(fmt::format("{}_{}", phase, metric.name));
  return names;
}

// Columns that have the value of the axis of the same name in every view.
constexpr std::array<std::string_view, 9> same_value{"model",    "strategy", "seed",    "epochs", "dataset",
                                                     "replicas", "stages",   "servers", "tensor"};

std::string lower_case(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

std::string doubled(const std::string& text, char quote) {
  std::string out(1, quote);
  for (const char c : text) {
    if (c == '\0') continue;  // ends SQL
    out += c;
    if (c == quote) out += c;
  }
  return out + quote;
}

bool has(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

bool names_the_arm(const std::string& name) {
  return name == "model" || name == "strategy" || name == "seed";
}

void add_axis(std::vector<std::string>& names, const std::string& name) {
  if (!names_the_arm(name) && !has(names, name)) names.push_back(name);
}

// Add the axes that the matrices in the journal vary.
void add_planned(const SQLite::Database& connection, const std::string& experiment,
                 std::vector<std::string>& names) {
  for (const std::string& text : read_all<std::vector<std::string>>(
           connection,
           "SELECT varied FROM journal WHERE type = 'run' AND varied IS NOT NULL "
           "AND (?1 = '' OR experiment = ?1) ORDER BY id",
           experiment)) {
    const auto varied = nlohmann::json::parse(text, nullptr, false);
    if (!varied.is_array()) continue;
    for (const auto& name : varied)
      if (name.is_string()) add_axis(names, name.get<std::string>());
  }
}

// Add other values that differ between runs of one experiment, model and strategy. The global batch is
// omitted if the batch varies, because it is derived from it.
void add_found(const SQLite::Database& connection, const std::string& experiment,
               std::vector<std::string>& names) {
  const auto found = read_all<std::vector<std::string>>(connection, R"sql(
    SELECT DISTINCT name FROM (
      SELECT x.name AS name FROM experiment_run m
      CROSS JOIN run r ON r.run_key = m.run_key
      CROSS JOIN axis_value x ON x.run_key = m.run_key
      WHERE ?1 = '' OR m.experiment = ?1
      GROUP BY m.experiment, r.model, m.strategy, x.name HAVING MIN(x.json) <> MAX(x.json))
    ORDER BY name)sql",
                                                        experiment);
  for (const std::string& name : found)
    if (name != "global_batch" || (!has(names, "batch") && !has(found, "batch"))) add_axis(names, name);
}

// SQL of the text of all axes: "batch 64, learning_rate 0.05". Empty if none varies.
std::string variant_sql(const std::vector<std::string>& axes) {
  std::string text;
  for (const std::string& axis : axes)
    text += fmt::format("{}COALESCE({} || {}, '')", text.empty() ? "" : " || ",
                        doubled(", " + axis + " ", '\''), axis_value_sql(axis));
  return axes.empty() ? "''" : "substr(" + text + ", 3)";
}

std::string final_metrics_view(const std::vector<std::string>& axes) {
  std::string text = fmt::format(
      "CREATE VIEW final_metrics AS\n"
      "SELECT v.run_key, v.experiment, v.model, v.strategy, v.seed{}"
      ", s.epoch_train_seconds, s.total_train_seconds, f.total_validation_seconds, s.epoch_energy_joules, "
      "s.peak_device_bytes, "
      "s.epoch_processor_seconds, s.times_count, s.times_problem,\n"
      "  {} AS variant",
      each_mean(all_phases, "f.{phase}_{name}"), variant_sql(axes));
  for (const AxisColumn& column : axis_columns(axes, fixed_columns()))
    text += fmt::format(",\n  {} AS {}", axis_value_sql(column.axis), quoted_identifier(column.name));
  return text +
         "\nFROM run_final f\n"
         "JOIN run_state s ON s.run_key = f.run_key\n"
         "JOIN run_in_experiment v ON v.run_key = f.run_key";
}

std::string stored_sql(const SQLite::Database& connection, const std::string& view) {
  SQLite::Statement statement(connection, "SELECT sql FROM sqlite_schema WHERE type = 'view' AND name = ?");
  Bound row(statement, view);
  return row.next() ? row.row().getColumn(0).getString() : "";
}

// CREATE VIEW final_metrics, then task_final_metrics, with one column per axis.
std::vector<std::string> axis_views(const std::vector<std::string>& axes) {
  std::string more = ",\n  v.variant";
  for (const AxisColumn& column : axis_columns(axes, fixed_columns()))
    more += ", v." + quoted_identifier(column.name);
  return {final_metrics_view(axes), task_final_metrics(more)};
}

}  // namespace

std::vector<std::string> views() {
  std::vector<std::string> all{attempt_status,       attempt_summary,     counted_attempt, run_chain,
                               run_epoch(),          run_in_experiment,   run_summary,     epoch_mean,
                               epoch_average(),      epoch_rank(),        epoch_replica(), timed_epoch,
                               epoch_train_seconds,  time_parts(),        step_event,      run_axis,
                               task_epoch_average(), task_epoch_replica()};
  for (std::string& view : axis_views({})) all.push_back(std::move(view));
  return all;
}

std::vector<std::string> varying_axes(const SQLite::Database& connection, const std::string& experiment) {
  std::vector<std::string> names;
  add_planned(connection, experiment, names);
  add_found(connection, experiment, names);
  return names;
}

std::vector<AxisColumn> axis_columns(const std::vector<std::string>& axes,
                                     const std::vector<std::string>& taken) {
  std::vector<std::string> used;
  std::ranges::transform(taken, std::back_inserter(used), lower_case);
  std::vector<AxisColumn> columns;
  for (const std::string& axis : axes) {
    if (has(used, axis) && std::ranges::find(same_value, axis) != same_value.end()) continue;
    std::string name = axis;
    while (has(used, lower_case(name))) name.insert(0, "axis_");
    used.push_back(lower_case(name));
    columns.push_back({axis, name});
  }
  return columns;
}

std::string axis_value_sql(const std::string& axis) {
  return "(SELECT x.value FROM axis_value x WHERE x.run_key = v.run_key AND x.name = " + doubled(axis, '\'') +
         ")";
}

std::string quoted_identifier(const std::string& name) {
  return doubled(name, '"');
}

void refresh_axis_views(SQLite::Database& connection) {
  const std::vector<std::string> wanted = axis_views(varying_axes(connection));
  if (stored_sql(connection, "final_metrics") == wanted[0] &&
      stored_sql(connection, "task_final_metrics") == wanted[1])
    return;
  SQLite::Savepoint all(connection, "axis_views");
  connection.exec("DROP VIEW IF EXISTS task_final_metrics; DROP VIEW IF EXISTS final_metrics");
  for (const std::string& view : wanted) connection.exec(view);
  all.release();
}

}  // namespace trainyard::db
