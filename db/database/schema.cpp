#include "db/database/schema.h"

#include <string>

#include <SQLiteCpp/SQLiteCpp.h>
#include <fmt/format.h>

#include "db/database/database.h"
#include "db/database/metric_sql.h"

namespace trainyard::db {

namespace {

// Primary keys are names from the files (run_key, attempt, rank, epoch …), so a rebuilt database has the same
// rows. The tables from run_state on are derived (db/database/run_states.h, record_faults.h), except probe,
// probe_layer and step_part. `attempt_key` and `rank_key` are the first columns of many tables. `rows_of_attempt`
// ends those whose rows are deleted with their attempt.
std::string tables() {
  const std::string attempt_key = R"sql(
  run_key TEXT NOT NULL,
  attempt INTEGER NOT NULL)sql";
  return fmt::format(R"sql(
CREATE TABLE journal (
  id INTEGER PRIMARY KEY,
  sha256 TEXT NOT NULL UNIQUE,
  type TEXT NOT NULL,
  time TEXT NOT NULL,
  experiment TEXT,
  file TEXT,
  toml TEXT,
  compare TEXT,
  varied TEXT,
  data_seed INTEGER,
  extra TEXT,
  expect TEXT
) STRICT;

CREATE TABLE journal_key (
  journal_id INTEGER NOT NULL REFERENCES journal (id),
  position INTEGER NOT NULL,
  run_key TEXT NOT NULL,
  strategy TEXT,
  PRIMARY KEY (journal_id, position)
) STRICT, WITHOUT ROWID;

CREATE TABLE experiment (
  name TEXT PRIMARY KEY,
  journal_id INTEGER NOT NULL REFERENCES journal (id)
) STRICT, WITHOUT ROWID;

CREATE TABLE removed (
  run_key TEXT PRIMARY KEY,
  time TEXT NOT NULL,
  up_to_attempt INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE earlier_result (
  run_key TEXT NOT NULL,
  attempt INTEGER NOT NULL,
  launched TEXT NOT NULL,
  times_problem TEXT NOT NULL,
  "values" TEXT NOT NULL,
  PRIMARY KEY (run_key, attempt)
) STRICT, WITHOUT ROWID;

CREATE TABLE run (
  run_key TEXT PRIMARY KEY,
  model TEXT NOT NULL,
  dataset TEXT NOT NULL,
  data_source TEXT NOT NULL,
  strategy TEXT NOT NULL,
  strategy_kind TEXT NOT NULL,
  replicas INTEGER NOT NULL,
  stages INTEGER NOT NULL,
  servers INTEGER NOT NULL,
  tensor INTEGER NOT NULL,
  seed INTEGER NOT NULL,
  epochs INTEGER NOT NULL,
  resolved TEXT NOT NULL,
  from_journal INTEGER NOT NULL,
  task TEXT
) STRICT;
CREATE INDEX run_of_model ON run (model, seed);

CREATE TABLE experiment_run (
  run_key TEXT NOT NULL REFERENCES run (run_key) ON DELETE CASCADE,
  experiment TEXT NOT NULL REFERENCES experiment (name),
  strategy TEXT NOT NULL,
  first_journal_id INTEGER NOT NULL REFERENCES journal (id),
  position INTEGER NOT NULL,
  latest_journal_id INTEGER NOT NULL REFERENCES journal (id),
  PRIMARY KEY (run_key, experiment)
) STRICT, WITHOUT ROWID;
CREATE INDEX experiment_run_order ON experiment_run (experiment, first_journal_id, position);

CREATE TABLE axis_value (
  run_key TEXT NOT NULL REFERENCES run (run_key) ON DELETE CASCADE,
  name TEXT NOT NULL,
  value ANY,
  json TEXT NOT NULL,
  PRIMARY KEY (run_key, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE attempt (
  run_key TEXT NOT NULL REFERENCES run (run_key) ON DELETE CASCADE,
  attempt INTEGER NOT NULL,
  experiment TEXT NOT NULL,
  directory TEXT NOT NULL,
  created TEXT NOT NULL,
  world_size INTEGER NOT NULL,
  host_exclusive INTEGER NOT NULL,
  devices_shared INTEGER NOT NULL,
  circumstances_hash TEXT NOT NULL,
  circumstances TEXT NOT NULL,
  host TEXT NOT NULL,
  processor TEXT NOT NULL,
  resumes_attempt INTEGER,
  resumes_after_epoch INTEGER,
  launch TEXT NOT NULL,
  other_share REAL,
  others_limit REAL,
  times_problem TEXT,
  times_count INTEGER AS (times_problem IS NULL),
  PRIMARY KEY (run_key, attempt)
) STRICT;

CREATE TABLE record_log ({rank_key},
  next_seq INTEGER NOT NULL,
  last_time TEXT,
  missing_seq INTEGER,
  PRIMARY KEY (run_key, attempt, rank),
{rows_of_attempt}

CREATE TABLE process ({rank_key},
  started TEXT,
  started_elapsed REAL,
  host TEXT,
  device TEXT,
  threads INTEGER,
  pid INTEGER,
  world_size INTEGER,
  replica INTEGER,
  stage INTEGER,
  parameters INTEGER,
  train_samples INTEGER,
  validation_samples INTEGER,
  test_samples INTEGER,
  trainyard_version TEXT,
  libtorch_version TEXT,
  start_extra TEXT,
  test_seconds REAL,
  test_extra TEXT,
  ended TEXT,
  ended_elapsed REAL,
  status TEXT,
  setup_seconds REAL,
  total_seconds REAL,
  error TEXT,
  end_extra TEXT,
  PRIMARY KEY (run_key, attempt, rank),
{rows_of_attempt}

CREATE TABLE epoch ({attempt_key},
  epoch INTEGER NOT NULL,
  rank INTEGER NOT NULL,
  time TEXT NOT NULL,
  elapsed_seconds REAL NOT NULL,
  train_seconds REAL,
  processor_seconds REAL,
  validation_seconds REAL{time_parts},
  extra TEXT,
  energy_joules REAL,
  energy_device TEXT,
  peak_device_bytes INTEGER,
  batches TEXT,
  PRIMARY KEY (run_key, attempt, epoch, rank),
{rows_of_attempt}

CREATE TABLE metric ({attempt_key},
  epoch INTEGER NOT NULL,
  phase TEXT NOT NULL,
  name TEXT NOT NULL,
  rank INTEGER NOT NULL,
  sum REAL,
  weight REAL NOT NULL,
  PRIMARY KEY (run_key, attempt, epoch, phase, name, rank),
{rows_of_attempt}

CREATE TABLE message ({rank_key},
  seq INTEGER NOT NULL,
  time TEXT NOT NULL,
  elapsed_seconds REAL NOT NULL,
  level TEXT NOT NULL,
  text TEXT NOT NULL,
  extra TEXT,
  PRIMARY KEY (run_key, attempt, rank, seq),
{rows_of_attempt}

CREATE TABLE event ({attempt_key},
  seq INTEGER NOT NULL,
  time TEXT NOT NULL,
  type TEXT NOT NULL,
  of_rank INTEGER,
  code INTEGER,
  signal INTEGER,
  why TEXT,
  outcome TEXT,
  error TEXT,
  log TEXT,
  extra TEXT,
  PRIMARY KEY (run_key, attempt, seq),
{rows_of_attempt}

CREATE TABLE extra_record ({rank_key},
  seq INTEGER NOT NULL,
  time TEXT NOT NULL,
  type TEXT NOT NULL,
  problem TEXT,
  body TEXT NOT NULL,
  PRIMARY KEY (run_key, attempt, rank, seq),
{rows_of_attempt}

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
  updated TEXT NOT NULL,
  times_count INTEGER,
  epoch_train_seconds REAL,
  epoch_processor_seconds REAL,
  first_epochs_timed INTEGER,
  timed_epochs INTEGER,
  disturbed_epochs INTEGER,
  energy_joules REAL,
  epoch_energy_joules REAL,
  peak_device_bytes INTEGER,
  other_share REAL,
  others_limit REAL,
  times_problem TEXT
) STRICT, WITHOUT ROWID;

CREATE TABLE attempt_chain (
  run_key TEXT NOT NULL REFERENCES run (run_key) ON DELETE CASCADE,
  attempt INTEGER NOT NULL,
  after_epoch INTEGER NOT NULL,
  up_to_epoch INTEGER NOT NULL,
  PRIMARY KEY (run_key, attempt)
) STRICT, WITHOUT ROWID;

CREATE TABLE probe ({rank_key},
  step INTEGER NOT NULL,
  loss REAL,
  reference_loss REAL,
  gradient_norm REAL,
  extra TEXT,
  PRIMARY KEY (run_key, attempt, rank, step),
{rows_of_attempt}

CREATE TABLE probe_layer ({rank_key},
  step INTEGER NOT NULL,
  position INTEGER NOT NULL,
  path TEXT NOT NULL,
  gradient_norm REAL,
  difference REAL,
  parameter_hash TEXT,
  PRIMARY KEY (run_key, attempt, rank, step, position),
  FOREIGN KEY (run_key, attempt, rank, step) REFERENCES probe (run_key, attempt, rank, step) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

CREATE TABLE step_part ({rank_key},
  epoch INTEGER NOT NULL,
  step INTEGER NOT NULL,
  position INTEGER NOT NULL,
  part TEXT NOT NULL,
  micro_batch INTEGER,
  begin_clock REAL NOT NULL,
  end_clock REAL NOT NULL,
  PRIMARY KEY (run_key, attempt, rank, epoch, step, position),
{rows_of_attempt}

CREATE TABLE attempt_epoch ({attempt_key},
  epoch INTEGER NOT NULL,
  ranks INTEGER NOT NULL{epoch_metrics},
  train_seconds REAL,
  processor_seconds REAL,
  validation_seconds REAL,
  energy_joules REAL,
  peak_device_bytes INTEGER,
  other_share REAL,
  disturbed INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (run_key, attempt, epoch),
{rows_of_attempt}

CREATE TABLE run_final (
  run_key TEXT PRIMARY KEY REFERENCES run (run_key) ON DELETE CASCADE{final_metrics},
  total_validation_seconds REAL
) STRICT, WITHOUT ROWID;

CREATE TABLE attempt_fault ({attempt_key},
  of_attempt INTEGER NOT NULL,
  of_rank INTEGER NOT NULL,
  type TEXT NOT NULL,
  epoch INTEGER NOT NULL,
  error TEXT NOT NULL,
  PRIMARY KEY (run_key, attempt),
{rows_of_attempt}
)sql",
                     fmt::arg("attempt_key", attempt_key),
                     fmt::arg("rank_key", attempt_key + ",\n  rank INTEGER NOT NULL"),
                     fmt::arg("rows_of_attempt",
                              "  FOREIGN KEY (run_key, attempt) REFERENCES attempt (run_key, attempt) "
                              "ON DELETE CASCADE\n) STRICT, WITHOUT ROWID;"),
                     fmt::arg("time_parts", each_part("{part}_seconds REAL")),
                     fmt::arg("epoch_metrics", each_recorded(epoch_phases, "{phase}_{name} REAL")),
                     fmt::arg("final_metrics", each_recorded(all_phases, "{phase}_{name} REAL") +
                                                   each_of_sums("test_{name} REAL")));
}

}  // namespace

void make_schema(SQLite::Database& connection) {
  SQLite::Transaction transaction(connection, SQLite::TransactionBehavior::IMMEDIATE);
  if (connection.execAndGet("PRAGMA user_version").getInt() == schema_version) return;
  connection.exec(tables());
  for (const std::string& view : views()) connection.exec(view);
  connection.exec(fmt::format("PRAGMA application_id = {}", application_id));
  connection.exec(fmt::format("PRAGMA user_version = {}", schema_version));
  transaction.commit();
}

}  // namespace trainyard::db
