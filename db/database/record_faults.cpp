#include "db/database/record_faults.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/parameter.h"
#include "base/text.h"
#include "db/database/run_states.h"
#include "db/database/statements.h"
#include "experiments/design/contract.h"
#include "models/metrics.h"

namespace trainyard::db {

namespace {

constexpr double unmeasured = std::numeric_limits<double>::infinity();
constexpr double rounding = 1e-9;        // of a sum that a program has added up in floating point
constexpr std::int64_t of_the_test = 0;  // the epoch of test metrics

// SQL: the weight is negative, or a count of predictions is negative or larger than its weight.
std::string wrong_metric() {
  std::vector<std::string> counts;
  for (const models::Metric& metric : models::all_metrics)
    if (metric.kind == models::MetricKind::accuracy) counts.push_back(fmt::format("'{}'", metric.record));
  return fmt::format("(weight < 0 OR (name IN ({}) AND (sum < 0 OR sum > weight * (1 + 1e-9))))",
                     joined(counts));
}

// What the orchestrator measured between launch and the end of the last rank, with clock tolerance.
constexpr const char* find_wall = R"sql(
SELECT MAX(extra ->> '$.seconds') * 1.001 + 0.1 FROM event WHERE run_key = ?1 AND attempt = ?2 AND type = 'exited'
HAVING COUNT(DISTINCT of_rank) >= (SELECT world_size FROM attempt WHERE run_key = ?1 AND attempt = ?2))sql";

std::string number_text(double value) {
  constexpr double exact = 1e15;
  return value == std::trunc(value) && std::abs(value) < exact
             ? std::to_string(static_cast<std::int64_t>(value))
             : trainyard::to_text(value);
}

std::string seconds_text(double value) {
  constexpr double microseconds = 1e6;
  return number_text(std::round(value * microseconds) / microseconds) + " s";
}

// "2, 5 to 7".
std::string ranges_text(const std::vector<std::pair<std::int64_t, std::int64_t>>& parts) {
  return joined(parts, [](const auto& part) {
    const std::string first = std::to_string(part.first);
    return part.first == part.second ? first : fmt::format("{} to {}", first, part.second);
  });
}

// The epochs of one rank, as they come, and its time so far.
struct RankEpochs {
  std::int64_t next = 1;
  std::vector<std::pair<std::int64_t, std::int64_t>> missing;
  double seconds = 0;  // of the attempt at hand

  void take(std::int64_t epoch) {
    if (epoch > next) missing.emplace_back(next, epoch - 1);
    next = std::max(next, epoch + 1);
  }
};

// What one rank states of a term.
struct RankStatement {
  std::int64_t rank = 0;
  std::string text;
};

std::string at_most_40(const std::string& text) {
  return shortened(printable_line(text), 40);
}

// A start's terms by a name that ranks can be held to: of first weights each layer by itself.
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

}  // namespace

std::string error_of_record(std::int64_t rank, const std::string& type, std::int64_t seq,
                            const std::string& problem) {
  return fmt::format("rank {}, record {} (seq {}): {}", rank, at_most_40(type), seq, problem);
}

struct RecordFaults::Fault {
  std::int64_t attempt = 0;  // of the record
  std::int64_t rank = 0;
  std::string type;  // of the record
  std::int64_t epoch = of_the_test;
  std::string error;
};

struct RecordFaults::Link {
  std::int64_t attempt = 0;
  std::int64_t after_epoch = 0;
  std::int64_t up_to_epoch = 0;
  bool holds(std::int64_t epoch) const { return epoch > after_epoch && epoch <= up_to_epoch; }
};

struct RecordFaults::Asked {
  std::int64_t epochs = 0;
  std::int64_t ranks = 0;
  bool foreign = false;
  bool repeats_samples = false;  // to fill up: which ones hangs on the epoch, and so may their weight
};

RecordFaults::RecordFaults(SQLite::Database& connection)
    : clear_(connection, "DELETE FROM attempt_fault WHERE run_key = ? AND attempt = ?"),
      put_(connection, R"sql(
        INSERT INTO attempt_fault (run_key, attempt, of_attempt, of_rank, type, epoch, error)
        VALUES (?, ?, ?, ?, ?, ?, ?))sql"),
      asked_(connection, R"sql(
        SELECT r.epochs, a.world_size, r.strategy_kind = 'foreign',
          r.resolved ->> '$.sampler' = 'distributed' OR EXISTS (
            SELECT 1 FROM process p WHERE p.run_key = ?1 AND p.attempt = ?2
              AND p.start_extra ->> '$.sampler' LIKE '%distributed%')
        FROM attempt a JOIN run r ON r.run_key = a.run_key
        WHERE a.run_key = ?1 AND a.attempt = ?2 AND a.world_size = (
          SELECT COUNT(*) FROM process p WHERE p.run_key = ?1 AND p.attempt = ?2 AND p.status = 'finished'))sql"),
      chain_(connection, "WITH RECURSIVE " + attempt_chain_from_last() +
                             " SELECT attempt, after_epoch, up_to_epoch FROM chain ORDER BY attempt"),
      epochs_(connection, R"sql(
        SELECT epoch, rank, train_seconds, validation_seconds, batches FROM epoch
        WHERE run_key = ? AND attempt = ? ORDER BY epoch, rank)sql"),
      after_training_(connection, R"sql(
        SELECT rank, test_seconds, setup_seconds, total_seconds FROM process
        WHERE run_key = ? AND attempt = ? ORDER BY rank)sql"),
      metrics_(connection,
               std::string("SELECT epoch, phase, name, SUM(weight), MAX") + wrong_metric() + R"sql(
        FROM metric WHERE run_key = ? AND attempt = ? GROUP BY epoch, phase, name)sql"),
      wrong_metric_(connection, std::string(R"sql(
        SELECT rank, phase, name, sum, weight FROM metric
        WHERE run_key = ? AND attempt = ? AND epoch = ? AND )sql") +
                                    wrong_metric() + " ORDER BY rank LIMIT 1"),
      weights_(connection, R"sql(
        SELECT rank, SUM(before), SUM(now)
        FROM (SELECT rank, weight AS before, 0 AS now FROM metric
              WHERE run_key = ?1 AND attempt = ?2 AND epoch = ?3 AND phase = ?6 AND name = ?7
              UNION ALL SELECT rank, 0, weight FROM metric
              WHERE run_key = ?1 AND attempt = ?4 AND epoch = ?5 AND phase = ?6 AND name = ?7)
        GROUP BY rank ORDER BY ABS(SUM(now) - SUM(before)) DESC, rank LIMIT 1)sql"),
      starts_(connection, R"sql(
        SELECT rank, COALESCE(stage, 0), start_extra FROM process
        WHERE run_key = ? AND attempt = ? AND start_extra IS NOT NULL ORDER BY rank)sql"),
      unreadable_(connection, fmt::format(R"sql(
        SELECT rank, seq, problem FROM extra_record
        WHERE run_key = ? AND attempt = ? AND type = ? AND problem <> '{}' ORDER BY rank, seq)sql",
                                          impossible::after_end)),
      impossible_(connection, fmt::format(R"sql(
        SELECT rank, seq, type, problem FROM extra_record
        WHERE run_key = ? AND attempt = ? AND rank >= 0
          AND (problem IN ('{}', '{}', '{}') OR (? AND problem = '{}'))
        ORDER BY rank, seq LIMIT 1)sql",
                                          impossible::no_epoch, impossible::negative_seconds,
                                          impossible::second_test, impossible::after_end)),
      without_cause_(connection, R"sql(
        SELECT MAX(type = 'cause') = 0 FROM event WHERE run_key = ? AND attempt = ?)sql"),
      ruled_out_(connection, R"sql(
        SELECT COALESCE(of_rank, 0), type, why FROM event
        WHERE run_key = ? AND attempt = ? AND type IN ('over_limit', 'changed_file') ORDER BY seq LIMIT 1)sql"),
      wall_(connection, find_wall) {}

void RecordFaults::put(const std::string& run_key, int attempt) {
  execute(clear_, run_key, attempt);
  if (const auto fault = find(run_key, attempt))
    execute(put_, run_key, attempt, fault->attempt, fault->rank, fault->type, fault->epoch, fault->error);
}

std::optional<RecordFaults::Asked> RecordFaults::asked(const std::string& run_key, int attempt) {
  Bound rows(asked_, run_key, attempt);
  if (!rows.next()) return std::nullopt;
  RowReader row(rows.row());
  Asked asked;
  asked.epochs = row.integer();
  asked.ranks = row.integer();
  asked.foreign = row.flag();
  asked.repeats_samples = row.flag();
  return asked;
}

std::vector<RecordFaults::Link> RecordFaults::chain(const std::string& run_key, int attempt) {
  std::vector<Link> links;
  Bound rows(chain_, run_key, attempt);
  while (rows.next()) {
    RowReader row(rows.row());
    Link link;
    link.attempt = row.integer();
    link.after_epoch = row.integer();
    link.up_to_epoch = row.integer();
    links.push_back(link);
  }
  return links;
}

RecordFaults::Found RecordFaults::find(const std::string& run_key, int attempt) {
  const auto asks = asked(run_key, attempt);
  if (!asks) return std::nullopt;
  const std::vector<Link> links = chain(run_key, attempt);
  if (links.empty()) return std::nullopt;
  if (auto fault = ruled_out(run_key, attempt)) return fault;
  if (auto fault = impossible_record(run_key, links)) return fault;
  if (auto fault = in_epochs(run_key, links, *asks)) return fault;
  if (auto fault = unreadable(run_key, attempt, "test")) return fault;
  if (auto fault = in_metrics(run_key, links, *asks)) return fault;
  if (auto fault = in_times_after_training(run_key, links.back())) return fault;
  return in_terms(run_key, attempt, *asks);
}

// An event of the orchestrator that fails the attempt.
RecordFaults::Found RecordFaults::ruled_out(const std::string& run_key, int attempt) {
  Bound rows(ruled_out_, run_key, attempt);
  if (!rows.next()) return std::nullopt;
  RowReader row(rows.row());
  const std::int64_t rank = row.integer();
  const std::string type = row.text();
  return Fault{attempt, rank, type, of_the_test, row.text()};
}

RecordFaults::Found RecordFaults::impossible_record(const std::string& run_key,
                                                    const std::vector<Link>& links) {
  const bool late_ones_count = !has_events_but_no_cause(run_key, static_cast<int>(links.back().attempt));
  for (const Link& link : links) {
    Bound rows(impossible_, run_key, link.attempt, late_ones_count ? 1 : 0);
    if (!rows.next()) continue;
    RowReader row(rows.row());
    const std::int64_t rank = row.integer();
    const std::int64_t seq = row.integer();
    const std::string type = row.text();
    return Fault{link.attempt, rank, type, of_the_test, error_of_record(rank, type, seq, row.text())};
  }
  return std::nullopt;
}

bool RecordFaults::has_events_but_no_cause(const std::string& run_key, int attempt) {
  Bound row(without_cause_, run_key, attempt);
  return row.next() && row.row().getColumn(0).getInt() == 1;  // NULL without events
}

// Each rank has each epoch once, in times that fit into the attempt's own, and with the others' data order.
RecordFaults::Found RecordFaults::in_epochs(const std::string& run_key, const std::vector<Link>& links,
                                            const Asked& asked) {
  std::vector<RankEpochs> ranks(static_cast<std::size_t>(asked.ranks));
  Found impossible;  // said only if all epochs are there
  const auto claim = [&](const Link& link, std::int64_t epoch, std::int64_t rank, const std::string& error) {
    if (!impossible) impossible = Fault{link.attempt, rank, "epoch", epoch, error};
  };
  for (const Link& link : links) {
    const double wall = wall_seconds(run_key, static_cast<int>(link.attempt));
    for (RankEpochs& rank : ranks) rank.seconds = 0;
    std::int64_t stated_epoch = 0;
    RankStatement stated;
    Bound rows(epochs_, run_key, link.attempt);
    while (rows.next()) {
      RowReader row(rows.row());
      const std::int64_t epoch = row.integer();
      const std::int64_t rank = row.integer();
      const std::string of = fmt::format("rank {}, epoch {}: ", rank, epoch);
      if (rank < 0 || rank >= asked.ranks) continue;
      RankEpochs& own = ranks[static_cast<std::size_t>(rank)];
      for (const char* name : {"train_seconds", "validation_seconds"}) {
        const double taken = row.number();
        if (taken < 0)
          claim(link, epoch, rank,
                fmt::format("{}{} is {}, and no time is below 0 s", of, name, seconds_text(taken)));
        if (taken > 0) own.seconds += taken;
      }
      if (own.seconds > wall)
        claim(link, epoch, rank,
              fmt::format("{}train_seconds and validation_seconds are {} up to here, but the run took at "
                          "most {} from launch to end",
                          of, seconds_text(own.seconds), seconds_text(wall)));
      if (!link.holds(epoch)) continue;
      own.take(epoch);
      if (epoch > asked.epochs)
        return Fault{link.attempt, rank, "epoch", epoch,
                     fmt::format("{}the run asks for {} epochs", of, asked.epochs)};
      const std::string batches = row.text();
      if (batches.empty()) continue;
      if (stated_epoch == epoch && stated.text != batches)
        claim(link, epoch, rank,
              fmt::format("{}states another data order (batches) than rank {}: {} against {}", of,
                          stated.rank, at_most_40(batches), at_most_40(stated.text)));
      if (stated_epoch != epoch) stated = {rank, batches};
      stated_epoch = epoch;
    }
  }
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    RankEpochs& rank = ranks[i];
    rank.take(asked.epochs + 1);
    if (rank.missing.empty()) continue;
    const auto number = static_cast<std::int64_t>(i);
    const bool one = rank.missing.size() == 1 && rank.missing[0].first == rank.missing[0].second;
    return Fault{
        links.back().attempt, number, "end", of_the_test,
        fmt::format(
            "rank {} says that it has finished, but of the {}{} asked for it has recorded none of {}{}{}", i,
            asked.epochs, asked.epochs == 1 ? " epoch" : " epochs", one ? "epoch " : "epochs ",
            ranges_text(rank.missing),
            why_left_out(run_key, static_cast<int>(links.back().attempt), number, "epoch"))};
  }
  return impossible;
}

RecordFaults::Found RecordFaults::in_times_after_training(const std::string& run_key, const Link& last) {
  const double wall = wall_seconds(run_key, static_cast<int>(last.attempt));
  Bound rows(after_training_, run_key, last.attempt);
  while (rows.next()) {
    RowReader row(rows.row());
    const std::int64_t rank = row.integer();
    using Member = std::pair<const char*, const char*>;
    for (const auto& [type, name] :
         {Member{"test", "seconds"}, Member{"end", "setup_seconds"}, Member{"end", "total_seconds"}}) {
      const double taken = row.number();
      if (!(taken < 0 || taken > wall)) continue;
      return Fault{last.attempt, rank, type, of_the_test,
                   fmt::format("rank {}, record {}: {} is {}{}", rank, type, name, seconds_text(taken),
                               taken < 0 ? ", and no time is below 0 s"
                                         : ", but the run took at most " + seconds_text(wall) +
                                               " from launch to end")};
    }
  }
  return std::nullopt;
}

// What a phase weighs over all ranks does not change from epoch to epoch.
RecordFaults::Found RecordFaults::in_metrics(const std::string& run_key, const std::vector<Link>& links,
                                             const Asked& asked) {
  struct First {
    Link link;
    std::int64_t epoch = 0;
    double weight = 0;
  };
  std::map<std::pair<std::string, std::string>, First> firsts;  // by phase and name
  for (const Link& link : links) {
    Bound rows(metrics_, run_key, link.attempt);
    while (rows.next()) {
      RowReader row(rows.row());
      const std::int64_t epoch = row.integer();
      std::string phase = row.text();
      std::string name = row.text();
      const double weight = row.number();
      if (epoch == of_the_test ? &link != &links.back() : !link.holds(epoch)) continue;
      if (row.flag()) return in_metric(run_key, link, epoch);
      if (epoch == of_the_test || (phase == "train" && asked.repeats_samples)) continue;
      const auto [first, is_new] = firsts.try_emplace({phase, name}, First{link, epoch, weight});
      const First& before = first->second;
      if (is_new || std::abs(before.weight - weight) <= rounding * std::abs(before.weight)) continue;
      return of_weights(run_key, before.link, before.epoch, link, epoch, phase, name);
    }
  }
  return std::nullopt;
}

RecordFaults::Found RecordFaults::in_metric(const std::string& run_key, const Link& link,
                                            std::int64_t epoch) {
  Bound rows(wrong_metric_, run_key, link.attempt, epoch);
  if (!rows.next()) return std::nullopt;
  RowReader row(rows.row());
  const std::int64_t rank = row.integer();
  const std::string phase = row.text();
  const std::string name = row.text();
  const double sum = row.number();
  const double weight = row.number();
  const std::string record = epoch == of_the_test ? "record test" : fmt::format("epoch {}", epoch);
  const std::string of = fmt::format("rank {}, {}: {} {}", rank, record, phase, name);
  return Fault{link.attempt, rank, epoch == of_the_test ? "test" : "epoch", epoch,
               weight < 0
                   ? fmt::format("{} has the weight {}, and none is below 0", of, number_text(weight))
                   : fmt::format("{} has the sum {} of a weight of {}, and it counts from 0 to its weight",
                                 of, number_text(sum), number_text(weight))};
}

RecordFaults::Found RecordFaults::of_weights(const std::string& run_key, const Link& first,
                                             std::int64_t first_epoch, const Link& link, std::int64_t epoch,
                                             const std::string& phase, const std::string& name) {
  Bound rows(weights_, run_key, first.attempt, first_epoch, link.attempt, epoch, phase, name);
  if (!rows.next()) return std::nullopt;
  RowReader row(rows.row());
  const std::int64_t rank = row.integer();
  const double before = row.number();
  const double now = row.number();
  return Fault{link.attempt, rank, "epoch", epoch,
               fmt::format("rank {}, epoch {}: {} {} has a weight of {}, but in epoch {} of {}, and over all "
                           "ranks it must stay the same",
                           rank, epoch, phase, name, number_text(now), first_epoch, number_text(before))};
}

// Ranks of a program of the user's state the terms of one training.
RecordFaults::Found RecordFaults::in_terms(const std::string& run_key, int attempt, const Asked& asked) {
  if (!asked.foreign) return std::nullopt;
  std::map<std::string, RankStatement> stated;
  Bound rows(starts_, run_key, attempt);
  while (rows.next()) {
    RowReader row(rows.row());
    const std::int64_t rank = row.integer();
    const std::string stage = std::to_string(row.integer());
    const auto start = nlohmann::json::parse(row.text(), nullptr, false);
    if (!start.is_object()) continue;
    for (const auto& [term, text] : terms_of(start, stage)) {
      const auto [first, is_new] = stated.try_emplace(term, RankStatement{rank, text});
      if (is_new || first->second.text == text) continue;
      return Fault{attempt, rank, "start", of_the_test,
                   fmt::format("rank {} states another term than rank {}: {} {} against {}", rank,
                               first->second.rank, term, at_most_40(text), at_most_40(first->second.text))};
    }
  }
  return std::nullopt;
}

RecordFaults::Found RecordFaults::unreadable(const std::string& run_key, int attempt,
                                             const std::string& type) {
  Bound rows(unreadable_, run_key, attempt, type);
  if (!rows.next()) return std::nullopt;
  RowReader row(rows.row());
  const std::int64_t rank = row.integer();
  const std::int64_t seq = row.integer();
  return Fault{attempt, rank, type, of_the_test, error_of_record(rank, type, seq, row.text())};
}

// The first record of this type that could not be read; empty if there is none.
std::string RecordFaults::why_left_out(const std::string& run_key, int attempt, std::int64_t rank,
                                       const std::string& type) {
  Bound rows(unreadable_, run_key, attempt, type);
  while (rows.next()) {
    RowReader row(rows.row());
    if (row.integer() != rank) continue;
    const std::int64_t seq = row.integer();
    return fmt::format("; a record (seq {}) could not be read: {}", seq, row.text());
  }
  return "";
}

// Upper limit of the wall time, with clock tolerance. Infinite if unknown.
double RecordFaults::wall_seconds(const std::string& run_key, int attempt) {
  Bound rows(wall_, run_key, attempt);
  if (!rows.next()) return unmeasured;
  const double wall = number_or_nan(rows.row().getColumn(0));
  return std::isnan(wall) || wall < 0 ? unmeasured : wall;
}

}  // namespace trainyard::db
