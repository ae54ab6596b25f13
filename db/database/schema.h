// The schema of results.db: tables by numbered forward migrations (`user_version`), views for people made
// anew after each migration. `Database::open_for_writing` is the one user; db/README.md documents every table
// and view.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace SQLite {
class Database;
}
namespace trainyard::db {

// `PRAGMA application_id` of every results database: "TYRD".
inline constexpr int application_id = 0x54595244;

// What brings a database from version n (its place in the table, from 0) to n + 1.
std::span<const std::string_view> migrations();

// All views, each as one CREATE VIEW statement, in an order in which they can be made.
std::vector<std::string> views();

// Brings an open database forward to `schema_version` in one transaction; nothing to do where it is there.
// UserError where its tables are not those of the version that it is marked with; it is left as it was.
void migrate(SQLite::Database& connection);

// The tables of schema 1, for `db/database/schema.cpp`.

// Rows are named by what the files name them by (run_key, attempt, rank, epoch …), never by numbers of our
// own: a database rebuilt from the files has equal rows.
inline constexpr std::string_view first_version = R"sql(
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
  extra TEXT
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
  time TEXT NOT NULL
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
  seed INTEGER NOT NULL,
  epochs INTEGER NOT NULL,
  resolved TEXT NOT NULL,
  from_journal INTEGER NOT NULL
) STRICT;

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
  times_count INTEGER NOT NULL AS (host_exclusive AND NOT devices_shared),
  circumstances_hash TEXT NOT NULL,
  circumstances TEXT NOT NULL,
  host TEXT NOT NULL,
  processor TEXT NOT NULL,
  resumes_attempt INTEGER,
  resumes_after_epoch INTEGER,
  launch TEXT NOT NULL,
  PRIMARY KEY (run_key, attempt)
) STRICT;

CREATE TABLE spool (
  run_key TEXT NOT NULL,
  attempt INTEGER NOT NULL,
  rank INTEGER NOT NULL,
  next_seq INTEGER NOT NULL,
  last_time TEXT,
  missing_seq INTEGER,
  PRIMARY KEY (run_key, attempt, rank),
  FOREIGN KEY (run_key, attempt) REFERENCES attempt (run_key, attempt) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

CREATE TABLE process (
  run_key TEXT NOT NULL,
  attempt INTEGER NOT NULL,
  rank INTEGER NOT NULL,
  started TEXT,
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
  status TEXT,
  setup_seconds REAL,
  total_seconds REAL,
  error TEXT,
  end_extra TEXT,
  PRIMARY KEY (run_key, attempt, rank),
  FOREIGN KEY (run_key, attempt) REFERENCES attempt (run_key, attempt) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

CREATE TABLE epoch (
  run_key TEXT NOT NULL,
  attempt INTEGER NOT NULL,
  epoch INTEGER NOT NULL,
  rank INTEGER NOT NULL,
  time TEXT NOT NULL,
  elapsed_seconds REAL NOT NULL,
  train_seconds REAL,
  validation_seconds REAL,
  data_seconds REAL,
  forward_seconds REAL,
  backward_seconds REAL,
  exposed_communication_seconds REAL,
  bubble_seconds REAL,
  optimizer_seconds REAL,
  other_seconds REAL,
  extra TEXT,
  PRIMARY KEY (run_key, attempt, epoch, rank),
  FOREIGN KEY (run_key, attempt) REFERENCES attempt (run_key, attempt) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

CREATE TABLE metric (
  run_key TEXT NOT NULL,
  attempt INTEGER NOT NULL,
  epoch INTEGER NOT NULL,
  phase TEXT NOT NULL,
  name TEXT NOT NULL,
  rank INTEGER NOT NULL,
  sum REAL,
  weight REAL NOT NULL,
  PRIMARY KEY (run_key, attempt, epoch, phase, name, rank),
  FOREIGN KEY (run_key, attempt) REFERENCES attempt (run_key, attempt) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

CREATE TABLE message (
  run_key TEXT NOT NULL,
  attempt INTEGER NOT NULL,
  rank INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  time TEXT NOT NULL,
  elapsed_seconds REAL NOT NULL,
  level TEXT NOT NULL,
  text TEXT NOT NULL,
  extra TEXT,
  PRIMARY KEY (run_key, attempt, rank, seq),
  FOREIGN KEY (run_key, attempt) REFERENCES attempt (run_key, attempt) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

CREATE TABLE event (
  run_key TEXT NOT NULL,
  attempt INTEGER NOT NULL,
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
  FOREIGN KEY (run_key, attempt) REFERENCES attempt (run_key, attempt) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

CREATE TABLE extra_record (
  run_key TEXT NOT NULL,
  attempt INTEGER NOT NULL,
  rank INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  time TEXT NOT NULL,
  type TEXT NOT NULL,
  problem TEXT,
  body TEXT NOT NULL,
  PRIMARY KEY (run_key, attempt, rank, seq),
  FOREIGN KEY (run_key, attempt) REFERENCES attempt (run_key, attempt) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;
)sql";

}  // namespace trainyard::db
