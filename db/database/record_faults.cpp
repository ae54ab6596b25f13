#include "db/database/record_faults.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "db/database/run_states.h"
#include "db/database/statements.h"
#include "experiments/design/contract.h"
#include "models/metrics.h"

namespace trainyard::db {

namespace {

// Tables of attempt ?2 of run ?1, which all rules may read:
// - `chain`: the attempts that it consists of, each with the epochs that it contributes.
// - `wanted`: what the run requires. The sampler may repeat samples to fill the last step, and steps may end
//   within a pass. Their number, or that of their tokens, depends on the epoch.
// - `wall`: upper limit of the seconds from launch to end per attempt, with clock tolerance. NULL if unknown.
// - `own`: the epochs of all attempts of the chain. `counts`: the chain uses this one. `world_size`: of its attempt,
//   which differs if the run is elastic.
std::string tables_of_attempt() {
  return "WITH RECURSIVE " + attempt_chain_from_last() + R"sql(, wanted AS (
  SELECT r.epochs, a.world_size AS ranks, r.resolved ->> '$.sampler' = 'distributed'
      OR COALESCE(r.resolved ->> '$.steps_per_epoch', 0) > 0 OR EXISTS (
    SELECT 1 FROM process p WHERE p.run_key = ?1 AND p.attempt = ?2
      AND p.start_extra ->> '$.sampler' LIKE '%distributed%') AS repeats_samples
  FROM attempt a JOIN run r ON r.run_key = a.run_key WHERE a.run_key = ?1 AND a.attempt = ?2
), wall AS MATERIALIZED (
  SELECT attempt, (SELECT MAX(e.extra ->> '$.seconds') * 1.001 + 0.1 FROM event e
    WHERE e.run_key = ?1 AND e.attempt = c.attempt AND e.type = 'exited'
    HAVING COUNT(DISTINCT e.of_rank) >= (SELECT world_size FROM attempt WHERE run_key = ?1 AND attempt = c.attempt))
    AS seconds
  FROM chain c
), own AS MATERIALIZED (
  SELECT e.*, e.epoch > c.after_epoch AND e.epoch <= c.up_to_epoch AS counts, a.world_size
  FROM chain c JOIN attempt a ON a.run_key = ?1 AND a.attempt = c.attempt
  JOIN epoch e ON e.run_key = ?1 AND e.attempt = c.attempt AND e.rank BETWEEN 0 AND a.world_size - 1
)
)sql";
}

// One rule per row, in the order in which they are checked. Each selects faults: the attempt, rank, type and
// epoch (0: none) of the record, and the error. The first row is the fault. `@` begins a name of `names`.
constexpr std::array rules{
    // An event of the orchestrator fails the attempt.
    R"sql(SELECT attempt, COALESCE(of_rank, 0), type, 0, why FROM event
WHERE run_key = ?1 AND attempt = ?2 AND type IN ('over_limit', 'changed_file') ORDER BY seq)sql",

    // A record is impossible as a whole. One after the end of its rank may have come later.
    R"sql(SELECT x.attempt, x.rank, x.type, 0, @record_problem
FROM chain c JOIN extra_record x ON x.run_key = ?1 AND x.attempt = c.attempt
WHERE x.rank >= 0 AND (x.problem IN (@impossible) OR (x.problem = '@after_end' AND NOT COALESCE((
  SELECT MAX(type = 'cause') = 0 FROM event WHERE run_key = ?1 AND attempt = ?2), FALSE)))
ORDER BY x.attempt, x.rank, x.seq)sql",

    // No rank has other epochs than the run requires.
    R"sql(SELECT attempt, rank, 'epoch', epoch, printf('rank %d, epoch %d: the run asks for %d epochs', rank, epoch, epochs)
FROM own JOIN wanted WHERE counts AND epoch > epochs ORDER BY attempt, epoch, rank)sql",

    // Each rank has each epoch, except those of attempts with fewer ranks.
    R"sql(SELECT ?2, rank, 'end', 0, printf('rank %d finished, but its records lack %s %s of %d', rank,
    IIF(number = 1, 'epoch', 'epochs'), missing, epochs) || COALESCE((
    SELECT printf('; a record (seq %d) could not be read: %s', x.seq, x.problem) FROM extra_record x
    WHERE x.run_key = ?1 AND x.attempt = ?2 AND x.rank = m.rank AND x.type = 'epoch' AND x.problem <> '@after_end'
    ORDER BY x.seq LIMIT 1), '')
FROM (
  SELECT rank, SUM(last - first + 1) AS number,
    group_concat(IIF(first = last, first, first || ' to ' || last), ', ') AS missing
  FROM (
    SELECT rank, before + 1 AS first, epoch - 1 AS last
    FROM (
      SELECT rank, epoch, LAG(epoch, 1, 0) OVER (PARTITION BY rank ORDER BY epoch) AS before
      FROM (SELECT rank, epoch FROM own WHERE counts
            UNION SELECT p.rank, o.epoch FROM own o JOIN process p ON p.run_key = ?1 AND p.attempt = ?2
              AND p.rank >= o.world_size WHERE o.counts AND o.rank = 0
            UNION SELECT rank, epochs + 1 FROM process JOIN wanted WHERE run_key = ?1 AND attempt = ?2 AND rank < ranks))
    WHERE epoch > before + 1 ORDER BY rank, epoch)
  GROUP BY rank) m JOIN wanted ORDER BY rank)sql",

    // No time of an epoch is negative.
    R"sql(SELECT attempt, rank, 'epoch', epoch,
  printf('rank %d, epoch %d: %s is %.15g s, but times are ≥ 0 s', rank, epoch, name, ROUND(taken, 6))
FROM (SELECT attempt, rank, epoch, 'train_seconds' AS name, train_seconds AS taken FROM own
      UNION ALL SELECT attempt, rank, epoch, 'validation_seconds', validation_seconds FROM own)
WHERE taken < 0 ORDER BY attempt, epoch, rank, name)sql",

    // The epochs of a rank fit into the time of its attempt.
    R"sql(SELECT attempt, rank, 'epoch', epoch,
  printf('rank %d, epoch %d: train_seconds and validation_seconds are %.15g s up to here, but the run took at most %.15g s from launch to end',
         rank, epoch, ROUND(taken, 6), ROUND(seconds, 6))
FROM (SELECT attempt, rank, epoch,
        SUM(COALESCE(train_seconds, 0) + COALESCE(validation_seconds, 0)) OVER (PARTITION BY attempt, rank ORDER BY epoch) AS taken
      FROM own) JOIN wall USING (attempt)
WHERE taken > seconds ORDER BY attempt, epoch, rank)sql",

    // All ranks have the same data order.
    R"sql(SELECT attempt, rank, 'epoch', epoch,
  printf('rank %d, epoch %d: states another data order (batches) than rank %d: %s against %s', rank, epoch,
         first_rank, substr(batches, 1, 40), substr(first, 1, 40))
FROM (SELECT attempt, rank, epoch, batches, FIRST_VALUE(rank) OVER same AS first_rank, FIRST_VALUE(batches) OVER same AS first
      FROM own WHERE counts AND batches <> '' WINDOW same AS (PARTITION BY attempt, epoch ORDER BY rank))
WHERE batches <> first ORDER BY attempt, epoch, rank)sql",

    // The test can be read.
    R"sql(SELECT ?2, x.rank, x.type, 0, @record_problem FROM extra_record x
WHERE x.run_key = ?1 AND x.attempt = ?2 AND x.type = 'test' AND x.problem <> '@after_end' ORDER BY x.rank, x.seq)sql",

    // A weight is not negative. A count of predictions is from 0 to its weight, which is rounded.
    R"sql(SELECT m.attempt, rank, IIF(epoch = 0, 'test', 'epoch'), epoch,
  printf('rank %d, %s: %s %s has the ', rank, IIF(epoch = 0, 'record test', 'epoch ' || epoch), phase, name)
  || IIF(weight < 0, printf('weight %.15g, but weights are ≥ 0', weight),
         printf('sum %.15g of a weight of %.15g, and it counts from 0 to its weight', sum, weight))
FROM chain c JOIN metric m ON m.run_key = ?1 AND m.attempt = c.attempt
  AND (m.epoch > c.after_epoch AND m.epoch <= c.up_to_epoch OR m.epoch = 0 AND m.attempt = ?2)
WHERE weight < 0 OR (name IN (@counts) AND (sum < 0 OR sum > weight * (1 + 1e-9)))
ORDER BY m.attempt, epoch, rank, phase, name)sql",

    // What a phase weighs over all ranks does not change from epoch to epoch. The rank that changed most is named.
    R"sql(SELECT o.attempt, p.rank, 'epoch', o.epoch,
  printf('rank %d, epoch %d: %s %s has a weight of %.15g, but in epoch %d of %.15g, and over all ranks it must stay the same',
         p.rank, o.epoch, o.phase, o.name, COALESCE(n.weight, 0), first_epoch, COALESCE(b.weight, 0))
FROM (
  SELECT *
  FROM (
    SELECT attempt, epoch, phase, name, weight, FIRST_VALUE(weight) OVER same AS first_weight,
      FIRST_VALUE(attempt) OVER same AS first_attempt, FIRST_VALUE(epoch) OVER same AS first_epoch
    FROM (
      SELECT m.attempt, m.epoch, phase, name, SUM(weight) AS weight
      FROM chain c JOIN metric m ON m.run_key = ?1 AND m.attempt = c.attempt AND m.epoch > c.after_epoch
        AND m.epoch <= c.up_to_epoch JOIN wanted
      WHERE phase <> 'train' OR NOT repeats_samples GROUP BY m.attempt, m.epoch, phase, name)
    WINDOW same AS (PARTITION BY phase, name ORDER BY attempt, epoch))
  WHERE ABS(first_weight - weight) > 1e-9 * ABS(first_weight) ORDER BY attempt, epoch, phase, name LIMIT 1) o
JOIN process p ON p.run_key = ?1 AND p.attempt = ?2
LEFT JOIN metric n ON n.run_key = ?1 AND n.attempt = o.attempt AND n.epoch = o.epoch AND n.phase = o.phase
  AND n.name = o.name AND n.rank = p.rank
LEFT JOIN metric b ON b.run_key = ?1 AND b.attempt = first_attempt AND b.epoch = first_epoch AND b.phase = o.phase
  AND b.name = o.name AND b.rank = p.rank
ORDER BY ABS(COALESCE(n.weight, 0) - COALESCE(b.weight, 0)) DESC, p.rank)sql",

    // The times after training are possible.
    R"sql(SELECT attempt, rank, type, 0, printf('rank %d, record %s: %s is %.15g s, but ', rank, type, name, ROUND(taken, 6))
  || IIF(taken < 0, 'times are ≥ 0 s', printf('the run took at most %.15g s from launch to end', ROUND(seconds, 6)))
FROM (SELECT *, 'test' AS type, 'seconds' AS name, test_seconds AS taken FROM process
      UNION ALL SELECT *, 'end', 'setup_seconds', setup_seconds FROM process
      UNION ALL SELECT *, 'end', 'total_seconds', total_seconds FROM process) JOIN wall USING (attempt)
WHERE run_key = ?1 AND attempt = ?2 AND (taken < 0 OR taken > seconds) ORDER BY rank, type DESC, name)sql"};

// The SQL of all rules, with their names replaced. Its only row is the fault of the first rule that finds one.
std::string statement_of_rules() {
  std::vector<std::string> counts;
  for (const models::Metric& metric : models::all_metrics)
    if (metric.kind->is_fraction() && !metric.record.empty())
      counts.push_back(fmt::format("'{}'", metric.record));
  const std::array<std::pair<std::string, std::string>, 4> names{
      {{"@record_problem", record_problem},
       {"@after_end", impossible::after_end},
       {"@counts", joined(counts)},
       {"@impossible", fmt::format("'{}', '{}', '{}'", impossible::no_epoch, impossible::negative_seconds,
                                   impossible::second_test)}}};
  std::string sql = tables_of_attempt();
  for (std::size_t i = 0; i < rules.size(); ++i)
    sql += fmt::format("{}SELECT *, {} AS rule FROM ({} LIMIT 1)\n", i == 0 ? "" : "UNION ALL ", i, rules[i]);
  for (const auto& [name, text] : names)
    for (std::size_t place = 0; (place = sql.find(name)) != std::string::npos;)
      sql.replace(place, name.size(), text);
  return sql + "ORDER BY rule LIMIT 1";
}

// Terms in `start` that ranks must state alike, by name. First weights are compared per layer.
std::map<std::string, std::string> terms_of(const nlohmann::json& start, const std::string& stage) {
  std::map<std::string, std::string> terms;
  for (const auto& [name, text] : experiments::stated_by_start(start)) {
    const auto row = std::ranges::find(experiments::contract_terms(), name, &experiments::ContractTerm::name);
    const auto weights = start.find("initial_weights");
    if (name == "machine") continue;  // ranks may be on several
    if (name != "initial_weights") {
      terms[row->title] = text;
    } else if (weights->is_object()) {
      for (const auto& [path, hash] : weights->items())
        terms["initial weights of layer " + path] = hash.is_string() ? hash.get<std::string>() : hash.dump();
    } else {
      terms["initial weights of stage " + stage] = text;
    }
  }
  return terms;
}

constexpr const char* put_fault = R"sql(
INSERT INTO attempt_fault (run_key, attempt, of_attempt, of_rank, type, epoch, error) VALUES (?, ?, ?, ?, ?, ?, ?))sql";

AttemptFault fault_in(RowReader& row) {
  AttemptFault fault;
  row.into(fault.attempt, fault.rank, fault.type, fault.epoch, fault.error);
  fault.error = printable_line(fault.error);
  return fault;
}

// The fault of the first row: attempt, rank, type and epoch of the record, the error, and the record's seq.
std::optional<AttemptFault> first_fault(const Database& database, const std::string& sql,
                                        const std::string& run_key, int attempt) {
  const auto fault_of = [](RowReader row) {
    AttemptFault fault = fault_in(row);
    if (const double seq = row.number(); !std::isnan(seq)) fault.seq = static_cast<std::int64_t>(seq);
    return fault;
  };
  const auto found = read_rows(database, sql, fault_of, run_key, attempt);
  return found.empty() ? std::nullopt : std::optional(found.front());
}

}  // namespace

void RecordFaults::put(const std::string& run_key, int attempt) {
  execute(prepared_("DELETE FROM attempt_fault WHERE run_key = ? AND attempt = ?"), run_key, attempt);
  Bound finished(prepared_(R"sql(
        SELECT r.strategy_kind = 'foreign' FROM attempt a JOIN run r ON r.run_key = a.run_key
        WHERE a.run_key = ?1 AND a.attempt = ?2 AND a.world_size = (
          SELECT COUNT(*) FROM process p WHERE p.run_key = ?1 AND p.attempt = ?2 AND p.status = 'finished'))sql"),
                 run_key, attempt);
  if (!finished.next()) return;
  if (put_first(run_key, attempt)) return;
  if (RowReader(finished.row()).flag()) put_other_terms(run_key, attempt);
}

bool RecordFaults::put_first(const std::string& run_key, int attempt) {
  Bound rows(prepared_(statement_of_rules), run_key, attempt);
  if (!rows.next()) return false;
  RowReader row(rows.row());
  const AttemptFault fault = fault_in(row);
  execute(prepared_(put_fault), run_key, attempt, fault.attempt, fault.rank, fault.type, fault.epoch,
          fault.error);
  return true;
}

// Ranks of a program of the user's state the terms of one training.
void RecordFaults::put_other_terms(const std::string& run_key, int attempt) {
  std::map<std::string, std::pair<std::int64_t, std::string>> stated;  // rank and text by term
  Bound rows(prepared_(R"sql(
        SELECT rank, COALESCE(stage, 0), start_extra FROM process
        WHERE run_key = ? AND attempt = ? AND start_extra IS NOT NULL ORDER BY rank)sql"),
             run_key, attempt);
  while (rows.next()) {
    RowReader row(rows.row());
    const std::int64_t rank = row.integer();
    const std::string stage = std::to_string(row.integer());
    const auto start = nlohmann::json::parse(row.text(), nullptr, false);
    if (!start.is_object()) continue;
    for (const auto& [term, text] : terms_of(start, stage)) {
      const auto& [first_rank, first] = stated.try_emplace(term, rank, text).first->second;
      if (first == text) continue;
      const auto short_text = [](const std::string& of) { return shortened(printable_line(of), 40); };
      execute(prepared_(put_fault), run_key, attempt, attempt, rank, std::string("start"), 0,
              fmt::format("rank {} states another term than rank {}: {} {} against {}", rank, first_rank,
                          term, short_text(text), short_text(first)));
      return;
    }
  }
}

std::optional<AttemptFault> attempt_fault(const Database& database, const std::string& run_key, int attempt) {
  return first_fault(database, R"sql(
    SELECT f.of_attempt, f.of_rank, f.type, f.epoch, f.error, (
      SELECT MIN(e.seq) FROM extra_record e
      WHERE e.run_key = f.run_key AND e.attempt = f.of_attempt AND e.rank = f.of_rank
        AND e.problem IS NOT NULL AND INSTR(f.error, '(seq ' || e.seq || ')'))
    FROM attempt_fault f WHERE f.run_key = ? AND f.attempt = ?)sql",
                     run_key, attempt);
}

std::optional<AttemptFault> fault_at_close(const Database& database, const std::string& run_key,
                                           int attempt) {
  if (auto fault = attempt_fault(database, run_key, attempt)) return fault;
  return first_fault(
      database,
      std::string("SELECT x.attempt, x.rank, x.type, 0, ") + record_problem +
          ", x.seq FROM extra_record x WHERE x.run_key = ? AND x.attempt = ? AND x.problem = '" +
          impossible::after_end + "' ORDER BY x.rank, x.seq LIMIT 1",
      run_key, attempt);
}

}  // namespace trainyard::db
