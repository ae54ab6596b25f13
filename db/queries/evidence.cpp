#include "db/queries/evidence.h"

#include <SQLiteCpp/SQLiteCpp.h>

#include "db/database/run_states.h"
#include "db/database/statements.h"

namespace trainyard::db {

using nlohmann::json;

namespace {

json json_of(const std::string& text) {
  return text.empty() ? json(nullptr) : json::parse(text, nullptr, false);
}

// SQL: the number of samples of a phase in one epoch, from the weights of all ranks. The loss of an exported network may
// have weights of its own.
std::string samples_of(const std::string& phase, const std::string& epoch) {
  const auto weight = [&](const std::string& name) {
    return "(SELECT SUM(x.weight) FROM metric x WHERE x.run_key = c.run_key AND x.phase = '" + phase +
           "' AND x.name = '" + name + "' AND (x.attempt, x.epoch) = " + epoch + ")";
  };
  return "COALESCE(" + weight("correct") + ", " + weight("loss") + ")";
}

RunEvidence::Rank rank_of(RowReader row) {
  RunEvidence::Rank rank;
  row.into(rank.rank, rank.replica, rank.device, rank.threads, rank.trainyard_version, rank.libtorch_version,
           rank.parameters);
  rank.start = json_of(row.text());
  return rank;
}

// Attempts that did not fail and have probes of every rank that trains.
constexpr const char* whole_probes = R"sql(
WITH probed AS (
  SELECT p.run_key, p.attempt, a.circumstances_hash
  FROM (SELECT run_key, attempt, COUNT(DISTINCT rank) AS ranks FROM probe GROUP BY run_key, attempt) p
  JOIN attempt a ON a.run_key = p.run_key AND a.attempt = p.attempt
  JOIN run r ON r.run_key = p.run_key AND a.world_size = p.ranks + r.servers
  JOIN attempt_status s ON s.run_key = p.run_key AND s.attempt = p.attempt AND s.status <> 'failed'
)
)sql";

constexpr const char* attempts_after_the_last_finished = R"sql(
SELECT attempt, circumstances FROM attempt
WHERE run_key = ?1 AND attempt > COALESCE(
  (SELECT MAX(attempt) FROM attempt_status WHERE run_key = ?1 AND status = 'finished'), 0)
AND attempt > COALESCE((SELECT MAX(attempt) FROM attempt_fault WHERE run_key = ?1), 0)
ORDER BY attempt)sql";

// The epochs of attempt ?2 and of the attempts that it resumes, if all ranks have written them.
std::string whole_epochs() {
  return "WITH RECURSIVE " + attempt_chain_from_last() + R"sql(
SELECT e.epoch
FROM chain c JOIN attempt a ON a.run_key = ?1 AND a.attempt = c.attempt
JOIN attempt_epoch e ON e.run_key = ?1 AND e.attempt = c.attempt AND e.epoch > c.after_epoch
  AND e.epoch <= c.up_to_epoch
WHERE e.ranks >= a.world_size
ORDER BY e.epoch)sql";
}

constexpr const char* recorded_checkpoints = R"sql(
SELECT json_extract(body, '$.epoch') FROM extra_record
WHERE run_key = ? AND attempt = ? AND rank = 0 AND type = 'checkpoint' AND json_type(body, '$.epoch') = 'integer'
ORDER BY seq)sql";

}  // namespace

std::vector<RecordedWeights> recorded_weights(const Database& database, const std::string& run_key) {
  const auto weights_of = [](RowReader row) {
    return RecordedWeights{static_cast<int>(row.integer()), row.integer(), row.text()};
  };
  return read_rows(database, R"sql(
    SELECT e.attempt, e.epoch, e.extra ->> '$.weights'
    FROM run_chain c JOIN epoch e ON e.run_key = c.run_key AND e.attempt = c.attempt AND e.rank = 0
      AND e.epoch > c.after_epoch AND e.epoch <= c.up_to_epoch
    WHERE c.run_key = ? AND e.extra ->> '$.weights' IS NOT NULL ORDER BY e.epoch)sql",
                   weights_of, run_key);
}

std::vector<RunEvidence> run_evidence(const Database& database, const std::string& experiment) {
  static constexpr const char* last_epoch =
      "(SELECT e.attempt, e.epoch FROM run_epoch e WHERE e.run_key = c.run_key ORDER BY e.epoch DESC LIMIT "
      "1)";
  return translated(database.connection(), [&] {
    SQLite::Statement processes(database.connection(), R"sql(
      SELECT rank, COALESCE(replica, -(start_extra ->> '$.server' IS NOT NULL)), device, threads, trainyard_version, libtorch_version, parameters, start_extra
      FROM process WHERE run_key = ? AND attempt = ? AND started IS NOT NULL ORDER BY rank)sql");
    SQLite::Statement batches(database.connection(), R"sql(
      SELECT e.epoch, e.batches
      FROM run_chain c CROSS JOIN epoch e
        ON e.run_key = c.run_key AND e.attempt = c.attempt AND e.epoch > c.after_epoch AND e.epoch <= c.up_to_epoch
      WHERE c.run_key = ? AND e.batches IS NOT NULL ORDER BY e.epoch, e.rank)sql");
    const auto evidence_of = [&](RowReader row) {
      RunEvidence evidence;
      row.into(evidence.run_key, evidence.strategy_kind, evidence.data_fingerprint, evidence.host,
               evidence.processor, evidence.samples_an_epoch, evidence.validation_samples,
               evidence.test_samples, evidence.first_loss);
      for (Bound ranks(processes, evidence.run_key, row.integer()); ranks.next();)
        evidence.ranks.push_back(rank_of(RowReader(ranks.row())));
      for (Bound orders(batches, evidence.run_key); orders.next();)
        evidence.batches.emplace(orders.row().getColumn(0).getInt64(), orders.row().getColumn(1).getString());
      return evidence;
    };
    return read_rows(database,
                     R"sql(
      SELECT r.run_key, r.strategy_kind, json_extract(r.resolved, '$.data.fingerprint'), a.host, a.processor,
        )sql" + samples_of("train", last_epoch) +
                         ", " + samples_of("validation", last_epoch) + ", " +
                         samples_of("test", "(c.attempt, 0)") + R"sql(,
        (SELECT e.train_loss FROM run_epoch e WHERE e.run_key = c.run_key AND e.epoch = 1),
        c.attempt
      FROM experiment_run m
      JOIN run r ON r.run_key = m.run_key
      JOIN counted_attempt c ON c.run_key = m.run_key
      JOIN attempt a ON a.run_key = c.run_key AND a.attempt = c.attempt
      WHERE m.experiment = ? ORDER BY m.first_journal_id, m.position)sql",
                     evidence_of, experiment);
  });
}

std::vector<Probe> probes(const Database& database, const std::string& experiment) {
  const auto probe_of = [](RowReader row) {
    return Probe{row.text(), row.integer(), json::parse(row.text())};
  };
  return read_rows(database, whole_probes + std::string(R"sql(
    SELECT p.run_key, p.rank, json_object(
      'step', p.step, 'loss', p.loss, 'reference_loss', p.reference_loss, 'gradient_norm', p.gradient_norm,
      'layers', (SELECT json_group_array(json_object(
                   'path', path, 'gradient_norm', gradient_norm, 'difference', difference,
                   'parameter_hash', parameter_hash))
                 FROM (SELECT * FROM probe_layer l
                       WHERE l.run_key = p.run_key AND l.attempt = p.attempt AND l.rank = p.rank
                         AND l.step = p.step
                       ORDER BY l.position)))
    FROM experiment_run m
    JOIN (SELECT run_key, MAX(attempt) AS attempt FROM probed GROUP BY run_key) latest ON latest.run_key = m.run_key
    JOIN probe p ON p.run_key = latest.run_key AND p.attempt = latest.attempt
    WHERE m.experiment = ?
    ORDER BY m.first_journal_id, m.position, p.step, p.rank)sql"),
                   probe_of, experiment);
}

std::set<std::pair<std::string, std::string>> probed_runs(const Database& database) {
  return read_all<std::set<std::pair<std::string, std::string>>>(
      database, whole_probes + std::string("SELECT run_key, circumstances_hash FROM probed"));
}

std::vector<ResumableAttempt> resumable_attempts(const Database& database, const std::string& run_key) {
  using Epochs = std::vector<std::int64_t>;
  const auto resumable = [&](RowReader row) {
    ResumableAttempt attempt;
    attempt.attempt = static_cast<int>(row.integer());
    attempt.circumstances = experiments::circumstances_from_json(json::parse(row.text()));
    for (const std::int64_t epoch : read_all<Epochs>(database, whole_epochs(), run_key, attempt.attempt))
      if (epoch == attempt.whole_epochs + 1) ++attempt.whole_epochs;
    attempt.checkpoints = read_all<Epochs>(database, recorded_checkpoints, run_key, attempt.attempt);
    return attempt;
  };
  return read_rows(database, attempts_after_the_last_finished, resumable, run_key);
}

std::set<std::string> runs_with_nothing_to_resume(const Database& database) {
  return read_all<std::set<std::string>>(database, R"sql(
    SELECT run_key FROM run_state s
    WHERE status = 'finished' AND attempt = (SELECT MAX(attempt) FROM attempt a WHERE a.run_key = s.run_key))sql");
}

}  // namespace trainyard::db
