#include "db/ingest/ingest.h"

#include <SQLiteCpp/SQLiteCpp.h>

#include "db/database/run_states.h"
#include "db/database/schema.h"
#include "db/database/statements.h"
#include "db/ingest/rows.h"

namespace trainyard::db {

// The prepared statements of an `Ingest`.
struct Ingest::Statements {
  explicit Statements(SQLite::Database& database)
      : connection(database), prepared(database), states(database), records(prepared, states) {}

  SQLite::Database& connection;
  Prepared prepared;
  RunRows runs{prepared};
  JournalRows journal{prepared, runs};
  AttemptRows attempts{prepared, runs};
  RunStates states;
  RecordRows records;
  bool together = false;
  bool journal_taken = false;  // since the last update of the views with a column per axis

  // Run `work` completely or not at all, inside or outside a transaction. SQLite errors are translated.
  template <typename Work>
  auto atomically(Work&& work) {
    return translated(connection, [&] {
      execute(prepared("SAVEPOINT one_call"));
      try {
        const auto result = work();
        if (!together) states.refresh();
        execute(prepared("RELEASE one_call"));
        return result;
      } catch (...) {
        for (const char* sql : {"ROLLBACK TO one_call", "RELEASE one_call"}) {
          SQLite::Statement& statement = prepared(sql);
          statement.tryReset();
          statement.tryExecuteStep();
          statement.tryReset();
        }
        throw;
      }
    });
  }
};

Ingest::Ingest(Database& database)
    : database_(database), statements_(translated(database.connection(), [&] {
        return std::make_unique<Statements>(database.connection());
      })) {}

Ingest::~Ingest() = default;

void Ingest::together(const std::function<void()>& work) {
  if (statements_->together) return work();
  statements_->together = true;
  try {
    database_.transaction([&] {
      work();
      statements_->states.refresh();
      if (statements_->journal_taken) refresh_axis_views(database_.connection());
      statements_->journal_taken = false;
    });
  } catch (...) {
    statements_->together = false;
    statements_->journal_taken = false;
    statements_->states.forget();
    throw;
  }
  statements_->together = false;
}

void Ingest::journal_entry(const nlohmann::json& entry) {
  statements_->atomically([&] {
    statements_->journal.take(entry);
    if (entry.at("type") == "rm")
      for (const auto& key : entry.at("keys")) statements_->states.changed(key.get<std::string>());
    if (statements_->together)
      statements_->journal_taken = true;
    else
      refresh_axis_views(database_.connection());
    return Accepted::taken;
  });
}

Accepted Ingest::run_file(const nlohmann::json& run_json) {
  return statements_->atomically([&] {
    const Accepted accepted = statements_->attempts.take(run_json);
    if (accepted == Accepted::taken) statements_->states.changed(run_json.at("run").get<std::string>());
    return accepted;
  });
}

Accepted Ingest::record(const experiments::Record& record) {
  return statements_->atomically([&] { return statements_->records.take(record); });
}

std::int64_t Ingest::next_number(const std::string& run_key, int attempt, std::optional<int> rank) {
  return translated(database_.connection(),
                    [&] { return statements_->records.state_of(run_key, attempt, rank).next_seq; });
}

}  // namespace trainyard::db
