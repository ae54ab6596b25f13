#include "db/database/schema.h"

#include <array>
#include <string>

#include <SQLiteCpp/SQLiteCpp.h>
#include <sqlite3.h>

#include "base/error.h"
#include "db/database/database.h"
#include "db/database/run_states.h"
#include "db/database/statements.h"

namespace trainyard::db {

namespace {

void drop_views(SQLite::Database& connection) {
  SQLite::Statement names(connection, "SELECT name FROM sqlite_schema WHERE type = 'view'");
  std::string statements;
  while (names.executeStep()) statements += "DROP VIEW \"" + names.getColumn(0).getString() + "\";";
  names.reset();
  connection.exec(statements);
}

UserError wrongly_marked(const SQLite::Database& connection, int found, const std::string& why) {
  return UserError("is marked as a database of schema " + std::to_string(found) +
                       ", but its tables are not of that one" + why,
                   advice_for(SQLITE_CORRUPT), {.file = connection.getFilename()});
}

void bring_forward(SQLite::Database& connection, int found) try {
  if (found < 0) throw wrongly_marked(connection, found, "");
  drop_views(connection);
  for (const std::string_view step : migrations().subspan(static_cast<std::size_t>(found)))
    connection.exec(std::string(step));
  for (const std::string& view : views()) connection.exec(view);
  make_run_states(connection);
} catch (const SQLite::Exception& error) {
  if (error.getErrorCode() != SQLITE_ERROR) throw;  // the disk's fault, or another program's
  throw wrongly_marked(connection, found, std::string(" (") + error.what() + ")");
}

}  // namespace

void migrate(SQLite::Database& connection) {
  SQLite::Transaction transaction(connection, SQLite::TransactionBehavior::IMMEDIATE);
  const int found = connection.execAndGet("PRAGMA user_version").getInt();
  if (found == schema_version) return;
  bring_forward(connection, found);
  connection.exec("PRAGMA application_id = " + std::to_string(application_id));
  connection.exec("PRAGMA user_version = " + std::to_string(schema_version));
  transaction.commit();
}

// What each version of the schema adds to the one before. A text that was released never changes.

namespace {

// The task decides which metrics are derived for a run, the thresholds what is expected of it. All runs of
// before are of models that classify.
constexpr std::string_view second_version = R"sql(
ALTER TABLE run ADD COLUMN task TEXT;
UPDATE run SET task = 'classification' WHERE model IN ('mlp', 'cnn');
ALTER TABLE journal ADD COLUMN expect TEXT;
)sql";

// How each run stands, kept by the writer; see db/database/run_states.h. A removal says how many attempts it
// removes: a clock that was set back must not decide which ones.
constexpr std::string_view third_version = R"sql(
CREATE TABLE run_state (
  run_key TEXT PRIMARY KEY REFERENCES run (run_key) ON DELETE CASCADE,
  attempt INTEGER NOT NULL,
  status TEXT NOT NULL,
  attempts INTEGER NOT NULL,
  epochs_done INTEGER NOT NULL,
  total_train_seconds REAL,
  total_seconds REAL,
  test_accuracy REAL,
  failure TEXT,
  updated TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE attempt_chain (
  run_key TEXT NOT NULL REFERENCES run (run_key) ON DELETE CASCADE,
  attempt INTEGER NOT NULL,
  after_epoch INTEGER NOT NULL,
  up_to_epoch INTEGER NOT NULL,
  PRIMARY KEY (run_key, attempt)
) STRICT, WITHOUT ROWID;

ALTER TABLE removed ADD COLUMN up_to_attempt INTEGER;
)sql";

// No earlier release wrote probes.
constexpr std::string_view fourth_version = R"sql(
CREATE TABLE probe (
  run_key TEXT NOT NULL,
  attempt INTEGER NOT NULL,
  rank INTEGER NOT NULL,
  step INTEGER NOT NULL,
  loss REAL,
  reference_loss REAL,
  gradient_norm REAL,
  extra TEXT,
  PRIMARY KEY (run_key, attempt, rank, step),
  FOREIGN KEY (run_key, attempt) REFERENCES attempt (run_key, attempt) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

CREATE TABLE probe_layer (
  run_key TEXT NOT NULL,
  attempt INTEGER NOT NULL,
  rank INTEGER NOT NULL,
  step INTEGER NOT NULL,
  position INTEGER NOT NULL,
  path TEXT NOT NULL,
  gradient_norm REAL,
  difference REAL,
  parameter_hash TEXT,
  PRIMARY KEY (run_key, attempt, rank, step, position),
  FOREIGN KEY (run_key, attempt, rank, step) REFERENCES probe (run_key, attempt, rank, step) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;
)sql";

// Whether its times count follows from all attempts that make up a run.
constexpr std::string_view fifth_version = "ALTER TABLE run_state ADD COLUMN times_count INTEGER;";

// What a run and each of its epochs come to over all ranks, kept by the writer; see db/database/run_states.h.
constexpr std::string_view sixth_version = R"sql(
CREATE TABLE attempt_epoch (
  run_key TEXT NOT NULL,
  attempt INTEGER NOT NULL,
  epoch INTEGER NOT NULL,
  ranks INTEGER NOT NULL,
  train_loss REAL,
  train_accuracy REAL,
  validation_loss REAL,
  validation_accuracy REAL,
  train_seconds REAL,
  validation_seconds REAL,
  PRIMARY KEY (run_key, attempt, epoch),
  FOREIGN KEY (run_key, attempt) REFERENCES attempt (run_key, attempt) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

ALTER TABLE run_state ADD COLUMN epoch_train_seconds REAL;
ALTER TABLE run_state ADD COLUMN first_epochs_timed INTEGER;

CREATE TABLE run_final (
  run_key TEXT PRIMARY KEY REFERENCES run (run_key) ON DELETE CASCADE,
  train_loss REAL,
  train_accuracy REAL,
  validation_loss REAL,
  validation_accuracy REAL,
  test_loss REAL,
  test_accuracy REAL,
  test_bleu REAL,
  total_validation_seconds REAL
) STRICT, WITHOUT ROWID;

CREATE INDEX run_of_model ON run (model, seed);
)sql";

// What an epoch took of the devices. Where an earlier release took such records it kept the members as
// `extra`.
constexpr std::string_view seventh_version = R"sql(
ALTER TABLE epoch ADD COLUMN energy_joules REAL;
ALTER TABLE epoch ADD COLUMN energy_device TEXT;
ALTER TABLE epoch ADD COLUMN peak_device_bytes INTEGER;
UPDATE epoch SET
  energy_joules = extra ->> '$.energy_joules', energy_device = extra ->> '$.energy_device',
  peak_device_bytes = extra ->> '$.peak_device_bytes',
  extra = NULLIF(json_remove(extra, '$.energy_joules', '$.energy_device', '$.peak_device_bytes'), '{}')
WHERE COALESCE(json_type(extra, '$.energy_joules'), json_type(extra, '$.peak_device_bytes')) IS NOT NULL
  AND COALESCE(json_type(extra, '$.energy_joules'), 'null') IN ('integer', 'real', 'null')
  AND COALESCE(json_type(extra, '$.energy_device'), 'null') IN ('text', 'null')
  AND COALESCE(json_type(extra, '$.peak_device_bytes'), 'null') IN ('integer', 'null');
ALTER TABLE attempt_epoch ADD COLUMN energy_joules REAL;
ALTER TABLE attempt_epoch ADD COLUMN peak_device_bytes INTEGER;
ALTER TABLE run_state ADD COLUMN energy_joules REAL;
ALTER TABLE run_state ADD COLUMN epoch_energy_joules REAL;
ALTER TABLE run_state ADD COLUMN peak_device_bytes INTEGER;
)sql";

// Which samples an epoch took, as its hash. An earlier release kept the member as `extra`.
constexpr std::string_view eighth_version = R"sql(
ALTER TABLE epoch ADD COLUMN batches TEXT;
UPDATE epoch SET
  batches = extra ->> '$.batches', extra = NULLIF(json_remove(extra, '$.batches'), '{}')
WHERE json_type(extra, '$.batches') IN ('text', 'null');
)sql";

// Why the times of an attempt, and so of a run, do not count (NULL: they do), and what other processes took
// of its cores. Whether they count was a column that followed from the launch alone.
constexpr std::string_view ninth_version = R"sql(
ALTER TABLE attempt DROP COLUMN times_count;
ALTER TABLE attempt ADD COLUMN overlapped INTEGER NOT NULL DEFAULT 0;
ALTER TABLE attempt ADD COLUMN other_share REAL;
ALTER TABLE attempt ADD COLUMN times_problem TEXT;
ALTER TABLE attempt ADD COLUMN times_count INTEGER AS (times_problem IS NULL);
ALTER TABLE run_state ADD COLUMN other_share REAL;
ALTER TABLE run_state ADD COLUMN times_problem TEXT;
)sql";

// What the records of an attempt claim although it cannot be, kept by the writer; see
// db/database/record_faults.h.
constexpr std::string_view tenth_version = R"sql(
CREATE TABLE attempt_fault (
  run_key TEXT NOT NULL,
  attempt INTEGER NOT NULL,
  of_attempt INTEGER NOT NULL,
  of_rank INTEGER NOT NULL,
  type TEXT NOT NULL,
  epoch INTEGER NOT NULL,
  error TEXT NOT NULL,
  PRIMARY KEY (run_key, attempt),
  FOREIGN KEY (run_key, attempt) REFERENCES attempt (run_key, attempt) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;
)sql";

constexpr std::array<std::string_view, 10> all_migrations{
    first_version, second_version,  third_version,  fourth_version, fifth_version,
    sixth_version, seventh_version, eighth_version, ninth_version,  tenth_version};
static_assert(all_migrations.size() == schema_version);

}  // namespace

std::span<const std::string_view> migrations() {
  return all_migrations;
}

}  // namespace trainyard::db
