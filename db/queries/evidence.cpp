#include "db/queries/evidence.h"

#include <SQLiteCpp/SQLiteCpp.h>

#include "db/database/binding.h"
#include "db/database/errors.h"
#include "db/database/rows.h"

namespace trainyard::db {

using nlohmann::json;

namespace {

json json_of(const std::string& text) {
  return text.empty() ? json(nullptr) : json::parse(text, nullptr, false);
}

RunEvidence evidence_of(RowReader row) {
  RunEvidence evidence;
  evidence.run_key = row.text();
  evidence.strategy_kind = row.text();
  evidence.data_fingerprint = row.text();
  evidence.host = row.text();
  evidence.processor = row.text();
  evidence.samples_an_epoch = row.number();
  return evidence;
}

RunEvidence::Rank rank_of(RowReader row) {
  RunEvidence::Rank rank;
  rank.rank = row.integer();
  rank.replica = row.integer();
  rank.device = row.text();
  rank.threads = row.integer();
  rank.trainyard_version = row.text();
  rank.libtorch_version = row.text();
  rank.start = json_of(row.text());
  return rank;
}

}  // namespace

std::vector<RunEvidence> run_evidence(const Database& database, const std::string& experiment) {
  return translated(database.connection(), [&] {
    SQLite::Statement statement(database.connection(), R"sql(
      SELECT r.run_key, r.strategy_kind, json_extract(r.resolved, '$.data.fingerprint'), a.host, a.processor,
        (SELECT SUM(x.weight) FROM metric x
         WHERE x.run_key = c.run_key AND x.phase = 'train' AND x.name = 'loss' AND (x.attempt, x.epoch) =
           (SELECT e.attempt, e.epoch FROM run_epoch e WHERE e.run_key = c.run_key ORDER BY e.epoch DESC LIMIT 1)),
        c.attempt
      FROM experiment_run m
      JOIN run r ON r.run_key = m.run_key
      JOIN counted_attempt c ON c.run_key = m.run_key
      JOIN attempt a ON a.run_key = c.run_key AND a.attempt = c.attempt
      WHERE m.experiment = ? ORDER BY m.first_journal_id, m.position)sql");
    SQLite::Statement processes(database.connection(), R"sql(
      SELECT rank, replica, device, threads, trainyard_version, libtorch_version, start_extra
      FROM process WHERE run_key = ? AND attempt = ? AND started IS NOT NULL ORDER BY rank)sql");
    SQLite::Statement batches(database.connection(), R"sql(
      SELECT e.epoch, e.batches
      FROM run_chain c CROSS JOIN epoch e
        ON e.run_key = c.run_key AND e.attempt = c.attempt AND e.epoch > c.after_epoch AND e.epoch <= c.up_to_epoch
      WHERE c.run_key = ? AND e.batches IS NOT NULL ORDER BY e.epoch, e.rank)sql");
    std::vector<RunEvidence> found;
    Bound rows(statement, experiment);
    while (rows.next()) {
      RunEvidence evidence = evidence_of(RowReader(rows.row()));
      Bound ranks(processes, evidence.run_key, rows.row().getColumn(6).getInt64());
      while (ranks.next()) evidence.ranks.push_back(rank_of(RowReader(ranks.row())));
      Bound orders(batches, evidence.run_key);
      while (orders.next())
        evidence.batches.emplace(orders.row().getColumn(0).getInt64(), orders.row().getColumn(1).getString());
      found.push_back(std::move(evidence));
    }
    return found;
  });
}

}  // namespace trainyard::db
