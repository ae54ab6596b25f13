#include "db/queries/probes.h"

#include <SQLiteCpp/SQLiteCpp.h>

#include "db/database/binding.h"
#include "db/database/errors.h"
#include "db/database/rows.h"

namespace trainyard::db {

namespace {

// Attempts with probes of every rank that did not fail.
const std::string whole_probes = R"sql(
WITH probed AS (
  SELECT p.run_key, p.attempt, a.circumstances_hash
  FROM (SELECT run_key, attempt, COUNT(DISTINCT rank) AS ranks FROM probe GROUP BY run_key, attempt) p
  JOIN attempt a ON a.run_key = p.run_key AND a.attempt = p.attempt AND a.world_size = p.ranks
  JOIN attempt_status s ON s.run_key = p.run_key AND s.attempt = p.attempt AND s.status <> 'failed'
)
)sql";

}  // namespace

std::vector<Probe> probes(const Database& database, const std::string& experiment) {
  return translated(database.connection(), [&] {
    SQLite::Statement statement(database.connection(), whole_probes + R"sql(
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
      ORDER BY m.first_journal_id, m.position, p.step, p.rank)sql");
    std::vector<Probe> found;
    Bound rows(statement, experiment);
    while (rows.next()) {
      RowReader row(rows.row());
      Probe probe;
      probe.run_key = row.text();
      probe.rank = row.integer();
      probe.body = nlohmann::json::parse(row.text());
      found.push_back(std::move(probe));
    }
    return found;
  });
}

std::set<std::pair<std::string, std::string>> probed_runs(const Database& database) {
  return translated(database.connection(), [&] {
    SQLite::Statement statement(database.connection(),
                                whole_probes + "SELECT run_key, circumstances_hash FROM probed");
    std::set<std::pair<std::string, std::string>> found;
    Bound rows(statement);
    while (rows.next()) {
      RowReader row(rows.row());
      std::string key = row.text();
      found.emplace(std::move(key), row.text());
    }
    return found;
  });
}

}  // namespace trainyard::db
