#include "db/ingest/run_rows.h"

#include <optional>

#include "db/database/binding.h"
#include "experiments/run/run.h"
#include "models/catalogue.h"

namespace trainyard::db {

using nlohmann::json;

namespace {

// As SQL sees a value: numbers and texts as themselves, lists as JSON text.
void bind_axis(SQLite::Statement& statement, int index, const json& value) {
  if (value.is_boolean())
    statement.bind(index, value.get<bool>() ? 1 : 0);
  else if (value.is_number_integer())
    statement.bind(index, value.get<std::int64_t>());
  else if (value.is_number_float())
    statement.bind(index, value.get<double>());
  else if (value.is_string())
    statement.bind(index, value.get_ref<const std::string&>());
  else
    statement.bind(index, json_text(value));
}

// What the file declares of a model of the user's own; nothing if it does not say.
std::optional<std::string> task_of(const experiments::Run& run) {
  if (!run.declared.task.empty()) return run.declared.task;
  for (const models::Model& row : models::catalogue())
    if (row.name == run.model && run.declared.model_title.empty()) return row.task;
  return std::nullopt;
}

}  // namespace

RunRows::RunRows(SQLite::Database& connection)
    : put_(connection, R"sql(
        INSERT INTO run (run_key, model, dataset, data_source, strategy, strategy_kind, replicas, stages, seed,
                         epochs, resolved, from_journal, task)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
        ON CONFLICT (run_key) DO UPDATE SET
          model = excluded.model, dataset = excluded.dataset, data_source = excluded.data_source,
          strategy = excluded.strategy, strategy_kind = excluded.strategy_kind, replicas = excluded.replicas,
          stages = excluded.stages, seed = excluded.seed, epochs = excluded.epochs,
          resolved = excluded.resolved, from_journal = excluded.from_journal, task = excluded.task
        WHERE excluded.from_journal > from_journal
           OR (excluded.from_journal = from_journal AND excluded.resolved <> resolved))sql"),
      clear_values_(connection, "DELETE FROM axis_value WHERE run_key = ?"),
      put_value_(connection, "INSERT INTO axis_value (run_key, name, value, json) VALUES (?, ?, ?, ?)"),
      remove_(connection, "DELETE FROM run WHERE run_key = ?") {}

void RunRows::put(const std::string& key, const json& resolved, RunOrigin origin) {
  const experiments::Run run = experiments::run_from_json(resolved);
  const int changes = execute(put_, key, run.model, run.data.dataset, run.data.source, run.strategy.name,
                              run.strategy.kind, run.strategy.replicas, run.strategy.stages, run.seed,
                              run.epochs, json_text(resolved), static_cast<int>(origin), task_of(run));
  if (changes > 0) put_values(key, resolved);
}

void RunRows::put_values(const std::string& key, const json& resolved) {
  execute(clear_values_, key);
  for (const auto& [name, value] : experiments::values_by_name(experiments::run_from_json(resolved))) {
    const json held = experiments::to_json(value);
    Bound row(put_value_, key, name, nullptr, json_text(held));
    bind_axis(put_value_, 3, held);
    row.row().exec();
  }
}

void RunRows::remove(const std::string& key) {
  execute(remove_, key);
}

}  // namespace trainyard::db
