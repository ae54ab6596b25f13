#include <array>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "db/database/metric_sql.h"
#include "db/database/record_faults.h"
#include "db/database/statements.h"
#include "db/ingest/rows.h"
#include "experiments/design/own_metric.h"
#include "experiments/protocol/time_parts.h"

namespace trainyard::db {

using experiments::Record;
using nlohmann::json;

namespace {

constexpr int orchestrator_rank = -1;
constexpr std::int64_t after_training = 0;  // the epoch of test metrics

int rank_of(const Record& record) {
  return record.rank.value_or(orchestrator_rank);
}

// A part can be the difference of two times, so it is refused only if clocks cannot explain it.
std::optional<double> possible_seconds(std::optional<double> seconds) {
  constexpr double clocks = 0.1;
  if (seconds && *seconds < -clocks) throw Unreadable(impossible::negative_seconds);
  return seconds;
}

Members own_members(const Record& record) {
  Members members(record.body);
  for (const char* common : {"v", "run", "attempt", "rank", "seq", "type", "time", "elapsed_seconds"})
    members.any(common);
  return members;
}

}  // namespace

template <typename... Values>
void RecordRows::write(const char* sql, const Record& record, const Values&... values) {
  execute(prepared_(sql), record.run, record.attempt, rank_of(record), values...);
}

template <typename... Values>
void RecordRows::write(const char* sql, const Record& record, const std::tuple<Values...>& all) {
  std::apply([&](const Values&... values) { write(sql, record, values...); }, all);
}

struct RecordRows::Kind {
  enum class Writer { rank, orchestrator, both };
  std::string_view type;
  Writer writer;
  void (RecordRows::*store)(const Record&, Members&);
};

const RecordRows::Kind* RecordRows::find_kind(const std::string& type) {
  static constexpr std::array<Kind, 16> kinds{{
      {"start", Kind::Writer::rank, &RecordRows::start},
      {"epoch", Kind::Writer::rank, &RecordRows::epoch},
      {"test", Kind::Writer::rank, &RecordRows::test},
      {"probe", Kind::Writer::rank, &RecordRows::probe},
      {"step", Kind::Writer::rank, &RecordRows::step},
      {"end", Kind::Writer::rank, &RecordRows::end},
      {"message", Kind::Writer::both, &RecordRows::message},
      {"leased", Kind::Writer::orchestrator, &RecordRows::event},
      {"launched", Kind::Writer::orchestrator, &RecordRows::event},
      {"submitted", Kind::Writer::orchestrator, &RecordRows::event},
      {"signalled", Kind::Writer::orchestrator, &RecordRows::event},
      {"exited", Kind::Writer::orchestrator, &RecordRows::event},
      {"processor_use", Kind::Writer::orchestrator, &RecordRows::event},
      {"over_limit", Kind::Writer::orchestrator, &RecordRows::event},
      {"changed_file", Kind::Writer::orchestrator, &RecordRows::event},
      {"cause", Kind::Writer::orchestrator, &RecordRows::event},
  }};
  for (const Kind& kind : kinds)
    if (kind.type == type) return &kind;
  return nullptr;
}

Accepted RecordRows::take(const Record& record) {
  const auto ranks = world_size(record);
  if (!ranks || rank_of(record) >= *ranks || rank_of(record) < orchestrator_rank) return Accepted::refused;
  const auto [expected, ended] = state_of(record.run, record.attempt, record.rank);
  if (record.seq < expected) return is_other(record) ? Accepted::conflict : Accepted::known;
  if (record.seq > expected) {
    write(R"sql(
        INSERT INTO record_log (run_key, attempt, rank, next_seq, missing_seq) VALUES (?1, ?2, ?3, ?4, ?4)
        ON CONFLICT (run_key, attempt, rank) DO UPDATE SET missing_seq = excluded.missing_seq)sql",
          record, expected);
    return Accepted::gap;
  }
  if (ended)
    extra(record, impossible::after_end);
  else
    store(record);
  write(R"sql(
        INSERT INTO record_log (run_key, attempt, rank, next_seq, last_time) VALUES (?, ?, ?, ?, ?)
        ON CONFLICT (run_key, attempt, rank) DO UPDATE SET
          next_seq = excluded.next_seq, last_time = excluded.last_time, missing_seq = NULL)sql",
        record, record.seq + 1, record.time);
  states_.changed(record.run, record.attempt);
  return Accepted::taken;
}

std::optional<std::int64_t> RecordRows::world_size(const Record& record) {
  Bound row(prepared_("SELECT world_size FROM attempt WHERE run_key = ? AND attempt = ?"), record.run,
            record.attempt);
  if (!row.next()) return std::nullopt;
  return row.row().getColumn(0).getInt64();
}

RecordRows::LogState RecordRows::state_of(const std::string& run_key, int attempt, std::optional<int> rank) {
  Bound row(prepared_(R"sql(
        SELECT s.next_seq, p.status IS NOT NULL FROM record_log s
        LEFT JOIN process p ON p.run_key = s.run_key AND p.attempt = s.attempt AND p.rank = s.rank
        WHERE s.run_key = ? AND s.attempt = ? AND s.rank = ?)sql"),
            run_key, attempt, rank.value_or(orchestrator_rank));
  if (!row.next()) return {};
  return {row.row().getColumn(0).getInt64(), row.row().getColumn(1).getInt() != 0};
}

// The times of the last record of a file, and of records that have a row by number, tell two records apart.
bool RecordRows::is_other(const Record& record) {
  Bound row(prepared_(R"sql(
        SELECT last_time FROM record_log WHERE run_key = ?1 AND attempt = ?2 AND rank = ?3 AND next_seq = ?4 + 1
          AND last_time IS NOT NULL
        UNION ALL SELECT time FROM event WHERE run_key = ?1 AND attempt = ?2 AND ?3 = -1 AND seq = ?4
        UNION ALL SELECT time FROM message WHERE run_key = ?1 AND attempt = ?2 AND rank = ?3 AND seq = ?4
        UNION ALL SELECT time FROM extra_record WHERE run_key = ?1 AND attempt = ?2 AND rank = ?3 AND seq = ?4)sql"),
            record.run, record.attempt, rank_of(record), record.seq);
  return row.next() && row.row().getColumn(0).getString() != record.time;
}

void RecordRows::store(const Record& record) {
  const Kind* kind = find_kind(record.type);
  if (!kind) return extra(record, std::nullopt);
  if (kind->writer != Kind::Writer::both && (kind->writer == Kind::Writer::rank) != record.rank.has_value())
    return extra(record, kind->writer == Kind::Writer::rank ? "only a rank writes it"
                                                            : "only the orchestrator writes it");
  execute(prepared_("SAVEPOINT one_record"));
  try {
    Members members = own_members(record);
    (this->*kind->store)(record, members);
    execute(prepared_("RELEASE one_record"));
  } catch (const Unreadable& error) {
    execute(prepared_("ROLLBACK TO one_record"));
    execute(prepared_("RELEASE one_record"));
    extra(record, error.what());
  }
}

void RecordRows::start(const Record& record, Members& members) {
  if (const auto metrics = record.body.find("metrics"); metrics != record.body.end()) try {
      experiments::own_metrics_from_json(*metrics);
    } catch (const UserError& error) {  // the other members count
      members.any("metrics");
      extra(record, error.what());
    }
  std::optional<std::int64_t> train, validation, test;
  members.inside("samples", [&](Members& samples) {
    train = samples.integer("train");
    validation = samples.integer("validation");
    test = samples.integer("test");
  });
  std::optional<std::string> trainyard, libtorch;
  members.inside("versions", [&](Members& versions) {
    trainyard = versions.text("trainyard");
    libtorch = versions.text("libtorch");
  });
  write(R"sql(
        INSERT INTO process (run_key, attempt, rank, started, started_elapsed, host, device, threads, pid, world_size, replica,
                             stage, parameters, train_samples, validation_samples, test_samples,
                             trainyard_version, libtorch_version, start_extra)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
        ON CONFLICT (run_key, attempt, rank) DO UPDATE SET
          started = excluded.started, started_elapsed = excluded.started_elapsed, host = excluded.host, device = excluded.device,
          threads = excluded.threads, pid = excluded.pid, world_size = excluded.world_size,
          replica = excluded.replica, stage = excluded.stage, parameters = excluded.parameters,
          train_samples = excluded.train_samples, validation_samples = excluded.validation_samples,
          test_samples = excluded.test_samples, trainyard_version = excluded.trainyard_version,
          libtorch_version = excluded.libtorch_version, start_extra = excluded.start_extra)sql",
        record,
        std::tuple{record.time, record.elapsed_seconds, members.text("host"), members.text("device"),
                   members.integer("threads"), members.integer("pid"), members.integer("world_size"),
                   members.integer("replica"), members.integer("stage"), members.integer("parameters"), train,
                   validation, test, trainyard, libtorch, members.rest()});
}

void RecordRows::epoch(const Record& record, Members& members) {
  const std::int64_t epoch = members.required_integer("epoch");
  if (epoch < 1) throw Unreadable(impossible::no_epoch);
  std::array<std::optional<double>, experiments::time_parts.size()> parts;
  members.inside("seconds", [&](Members& seconds) {
    for (std::size_t i = 0; i < parts.size(); ++i)
      parts[i] = possible_seconds(seconds.number(experiments::time_parts[i].data()));
  });
  if (const auto found = record.body.find("straggler_seconds");
      found != record.body.end() && found->is_number())
    possible_seconds(found->get<double>());
  metrics(record, epoch, members);
  static const std::string put_epoch =
      "INSERT OR REPLACE INTO epoch (run_key, attempt, rank, epoch, time, elapsed_seconds, train_seconds, "
      "processor_seconds, validation_seconds, energy_joules, energy_device, peak_device_bytes, batches, "
      "extra" +
      each_part("{part}_seconds") + ") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?" + each_part("?") +
      ")";
  write(put_epoch.c_str(), record,
        std::tuple_cat(std::tuple{epoch, record.time, record.elapsed_seconds, members.number("train_seconds"),
                                  possible_seconds(members.number("processor_seconds")),
                                  members.number("validation_seconds"), members.number("energy_joules"),
                                  members.text("energy_device"), members.integer("peak_device_bytes"),
                                  members.text("batches"), members.rest()},
                       parts));
  states_.changed(record.run, record.attempt, epoch);
}

void RecordRows::test(const Record& record, Members& members) {
  const auto seconds = members.number("seconds");
  if (Bound(prepared_(R"sql(
        SELECT 1 FROM process WHERE run_key = ?1 AND attempt = ?2 AND rank = ?3
          AND (test_seconds IS NOT NULL OR test_extra IS NOT NULL)
        UNION ALL SELECT 1 FROM metric WHERE run_key = ?1 AND attempt = ?2 AND epoch = 0 AND rank = ?3)sql"),
            record.run, record.attempt, *record.rank)
          .next())
    throw Unreadable(impossible::second_test);
  metrics(record, after_training, members);
  write(R"sql(
        INSERT INTO process (run_key, attempt, rank, test_seconds, test_extra) VALUES (?, ?, ?, ?, ?)
        ON CONFLICT (run_key, attempt, rank) DO UPDATE SET
          test_seconds = excluded.test_seconds, test_extra = excluded.test_extra)sql",
        record, seconds, members.rest());
}

void RecordRows::message(const Record& record, Members& members) {
  write(R"sql(
        INSERT INTO message (run_key, attempt, rank, seq, time, elapsed_seconds, level, text, extra)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?))sql",
        record,
        std::tuple{record.seq, record.time, record.elapsed_seconds, members.required_text("level"),
                   members.required_text("text"), members.rest()});
}

void RecordRows::end(const Record& record, Members& members) {
  write(R"sql(
        INSERT INTO process (run_key, attempt, rank, ended, ended_elapsed, status, setup_seconds, total_seconds,
                             error, end_extra)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
        ON CONFLICT (run_key, attempt, rank) DO UPDATE SET
          ended = excluded.ended, ended_elapsed = excluded.ended_elapsed, status = excluded.status, setup_seconds = excluded.setup_seconds,
          total_seconds = excluded.total_seconds, error = excluded.error, end_extra = excluded.end_extra)sql",
        record,
        std::tuple{record.time, record.elapsed_seconds, members.required_text("status"),
                   members.number("setup_seconds"), members.number("total_seconds"), members.text("error"),
                   members.rest()});
}

void RecordRows::event(const Record& record, Members& members) {
  execute(
      prepared_(R"sql(
        INSERT INTO event (run_key, attempt, seq, time, type, of_rank, code, signal, why, outcome, error, log,
                           extra)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?))sql"),
      std::tuple{record.run, record.attempt, record.seq, record.time, record.type, members.integer("of_rank"),
                 members.integer("code"), members.integer("signal"), members.text("why"),
                 record.type == "cause" ? members.required_text("outcome") : members.text("outcome"),
                 members.text("error"), members.text("log"), members.rest()});
}

// Insert this rank's sums of one epoch, and delete those of an earlier record of the epoch.
void RecordRows::metrics(const Record& record, std::int64_t epoch, Members& members) {
  write("DELETE FROM metric WHERE run_key = ? AND attempt = ? AND rank = ? AND epoch = ?", record, epoch);
  members.each("metrics", [&](Members& entry) {
    const std::string phase = entry.required_text("phase");
    const std::string name = entry.required_text("name");
    const auto sum = entry.number("sum");
    const auto weight = entry.number("weight");
    if (!weight) throw Unreadable("member weight must be a number");
    write(R"sql(
        INSERT OR REPLACE INTO metric (run_key, attempt, rank, epoch, phase, name, sum, weight)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?))sql",
          record, epoch, phase, name, sum, *weight);
  });
}

void RecordRows::extra(const Record& record, const std::optional<std::string>& problem) {
  write(R"sql(
        INSERT INTO extra_record (run_key, attempt, rank, seq, time, type, problem, body)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?))sql",
        record, record.seq, record.time, record.type, problem, record.body);
}

// One row per event. They replace those of an earlier record of the step.
void RecordRows::step(const Record& record, Members& members) {
  const std::int64_t epoch = members.required_integer("epoch");
  const std::int64_t step = members.required_integer("step");
  write("DELETE FROM step_part WHERE run_key = ? AND attempt = ? AND rank = ? AND epoch = ? AND step = ?",
        record, epoch, step);
  members.each("events", [&, position = 0](Members& event) mutable {
    const std::string part = event.required_text("part");
    const auto micro_batch = event.integer("micro_batch");
    const auto begin = event.number("begin"), end = event.number("end");
    if (!begin || !end || *begin > *end)
      throw Unreadable("members begin and end must be times in this order");
    write("INSERT INTO step_part VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", record, epoch, step, position++,
          part, micro_batch, *begin, *end);
  });
  if (!members.rest().is_null()) extra(record, std::nullopt);
}

// One row in `probe` per step of a rank, one in `probe_layer` per parameter. They replace those of an earlier
// record of the step.
void RecordRows::probe(const Record& record, Members& members) {
  const std::int64_t step = members.required_integer("step");
  const auto loss = members.number("loss");
  const auto reference_loss = members.number("reference_loss");
  const auto gradient_norm = members.number("gradient_norm");
  struct Layer {
    std::string path;
    std::optional<double> gradient_norm, difference;
    std::optional<std::string> parameter_hash;
  };
  std::vector<Layer> layers;
  members.each("layers", [&](Members& entry) {
    layers.push_back({entry.required_text("path"), entry.number("gradient_norm"), entry.number("difference"),
                      entry.text("parameter_hash")});
  });
  write("DELETE FROM probe WHERE run_key = ? AND attempt = ? AND rank = ? AND step = ?", record, step);
  write(R"sql(
        INSERT INTO probe (run_key, attempt, rank, step, loss, reference_loss, gradient_norm, extra)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?))sql",
        record, step, loss, reference_loss, gradient_norm, members.rest());
  for (std::size_t i = 0; i < layers.size(); ++i)
    write(R"sql(
        INSERT INTO probe_layer (run_key, attempt, rank, step, position, path, gradient_norm, difference,
                                 parameter_hash)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?))sql",
          record, step, i, layers[i].path, layers[i].gradient_norm, layers[i].difference,
          layers[i].parameter_hash);
}

}  // namespace trainyard::db
