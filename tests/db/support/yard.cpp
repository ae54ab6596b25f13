#include "tests/db/support/yard.h"

#include <algorithm>
#include <cstdio>

namespace trainyard::db::testing {

using experiments::Run;
using nlohmann::json;

Run make_run(const std::string& model, std::int64_t replicas, std::uint64_t seed, std::int64_t epochs) {
  Run run;
  run.model = model;
  run.hyperparameters["hidden"] = std::vector<std::int64_t>{250, 100};
  run.data.dataset = "mnist";
  run.data.source = "synthetic-digits";
  run.data.fingerprint = std::string(64, 'a');
  run.strategy.name = run.strategy.kind = replicas == 1 ? "single" : "ddp";
  run.strategy.replicas = replicas;
  run.epochs = epochs;
  run.seed = seed;
  run.axes = {
      {"model", run.model}, {"strategy", run.strategy.name}, {"seed", static_cast<std::int64_t>(seed)}};
  return run;
}

std::string key(const Run& run) {
  return experiments::run_key(run);
}

json run_entry(const std::string& experiment, const std::vector<Run>& runs, const std::string& time) {
  json entry{{"v", 1},
             {"type", "run"},
             {"time", time},
             {"experiment", experiment},
             {"file", experiment + ".toml"},
             {"toml", "name = \"" + experiment + "\"\n"},
             {"compare", json::array({experiments::to_json(experiments::Compare{})})},
             {"varied", {"strategy", "seed"}},
             {"data_seed", 0},
             {"keys", json::array()},
             {"strategies", json::object()},
             {"runs", json::object()}};
  for (const Run& run : runs) {
    const std::string key = experiments::run_key(run);
    entry["keys"].push_back(key);
    entry["strategies"][key] = run.strategy.name;
    entry["runs"][key] = experiments::to_json(run);
  }
  return entry;
}

json rm_entry(const std::vector<std::string>& keys, const std::string& time) {
  json entry{{"v", 1}, {"type", "rm"}, {"time", time}, {"keys", keys}};
  for (const std::string& key : keys) entry["attempts"][key] = 1;
  return entry;
}

experiments::Launch make_launch(const Run& run, int attempt, const std::string& created) {
  experiments::Launch launch;
  launch.key = experiments::run_key(run);
  launch.attempt = attempt;
  launch.records = "/yard/runs/" + launch.key + "/attempt-" + std::to_string(attempt);
  launch.experiment = "sweep";
  launch.run = run;
  launch.devices = std::vector<std::string>(static_cast<std::size_t>(run.strategy.world_size()), "cpu:0");
  launch.cores = std::vector<std::vector<int>>(launch.devices.size(), {0});
  launch.circumstances.host = "yardmaster";
  launch.circumstances.processor = "a processor";
  launch.created = created;
  return launch;
}

RecordLog::RecordLog(const Run& run, int attempt, std::optional<int> rank)
    : run_(experiments::run_key(run)), attempt_(attempt), rank_(rank) {}

experiments::Record RecordLog::next(const std::string& type, const json& body) {
  char time[40];
  std::snprintf(time, sizeof time, "2026-11-20T%02d:%02d:%02d.000Z", 10 + attempt_ % 10,
                static_cast<int>(seq / 60 % 60), static_cast<int>(seq % 60));
  const double elapsed = 0.001 * static_cast<double>(seq);  // no time beside that in the records
  experiments::Record record{run_, attempt_, rank_, seq, type, time, elapsed, body};
  record.body.update({{"v", 1},
                      {"run", run_},
                      {"attempt", attempt_},
                      {"seq", seq},
                      {"type", type},
                      {"time", time},
                      {"elapsed_seconds", elapsed}});
  if (rank_) record.body["rank"] = *rank_;
  ++seq;
  return record;
}

json start_body(int rank, std::int64_t world_size) {
  return {{"versions", {{"trainyard", "0.1.0"}, {"libtorch", "2.13.0"}}},
          {"device", "cpu:" + std::to_string(rank)},
          {"host", "yardmaster"},
          {"threads", 1},
          {"pid", 4711 + rank},
          {"world_size", world_size},
          {"replica", rank},
          {"stage", 0},
          {"parameters", 222'360},
          {"samples", {{"train", 8000}, {"validation", 1000}, {"test", 1000}}}};
}

json metric(const std::string& phase, const std::string& name, const json& sum, double weight) {
  return {{"phase", phase}, {"name", name}, {"sum", sum}, {"weight", weight}};
}

json epoch_body(std::int64_t epoch, double train_seconds, double validation_seconds,
                const std::vector<json>& metrics) {
  return {{"epoch", epoch},
          {"train_seconds", train_seconds},
          {"validation_seconds", validation_seconds},
          {"seconds",
           {{"data", 0.0625},
            {"forward", 0.5},
            {"backward", 0.75},
            {"exposed_communication", 0.0625},
            {"bubble", 0},
            {"optimizer", 0.09375},
            {"other", 0.03125}}},
          {"metrics", metrics}};
}

void record_epochs(Ingest& ingest, RecordLog& log, std::int64_t epochs) {
  for (std::int64_t epoch = 1; epoch <= epochs; ++epoch)
    ingest.record(log.next("epoch", epoch_body(epoch, 1, 0.5)));
}

json end_body(const std::string& status, double total_seconds, const std::string& error) {
  json body{{"status", status}, {"setup_seconds", 0.25}, {"total_seconds", total_seconds}};
  if (!error.empty()) body["error"] = error;
  return body;
}

void finish(Ingest& ingest, const Run& run, const experiments::Launch& launch,
            const std::vector<double>& train_seconds) {
  ingest.run_file(experiments::to_json(launch));
  const auto ranks = static_cast<int>(run.strategy.world_size());
  for (int rank = 0; rank < ranks; ++rank) {
    RecordLog log(run, launch.attempt, rank);
    const double share = rank + 1;
    ingest.record(log.next("start", start_body(rank, ranks)));
    for (std::size_t i = 0; i < train_seconds.size(); ++i) {
      const double epoch = static_cast<double>(i) + 1;
      const std::vector<json> metrics = {metric("train", "loss", 100 * share / epoch, 40 * share),
                                         metric("train", "correct", 30 * share, 40 * share),
                                         metric("validation", "loss", 16 * share, 8 * share),
                                         metric("validation", "correct", 4 * share, 8 * share)};
      ingest.record(
          log.next("epoch", epoch_body(static_cast<std::int64_t>(epoch), train_seconds[i], 0.125, metrics)));
    }
    ingest.record(log.next("test", {{"seconds", 0.5},
                                    {"metrics",
                                     {metric("test", "loss", 3 * share, 10 * share),
                                      metric("test", "correct", 9 * share, 10 * share)}}}));
    ingest.record(log.next("end", end_body("finished", 12.5 + rank)));
  }
}

void Yard::plan(const std::vector<Run>& runs, const std::string& time) {
  ingest.journal_entry(run_entry("sweep", runs, time));
}

Run Yard::launched(const std::string& model, std::int64_t replicas, std::uint64_t seed, std::int64_t epochs) {
  const Run run = make_run(model, replicas, seed, epochs);
  plan({run});
  ingest.run_file(experiments::to_json(make_launch(run)));
  return run;
}

std::vector<std::string> rows_of(const Database& database, const std::string& sql) {
  std::vector<std::string> lines;
  for (const auto& row : select(database, sql).rows) lines.push_back(json(row).dump());
  std::sort(lines.begin(), lines.end());
  return lines;
}

std::vector<std::string> names_of(const Database& database, const std::string& type) {
  std::vector<std::string> names;
  for (const auto& row :
       select(database, "SELECT name FROM sqlite_schema WHERE type = '" + type + "' ORDER BY name").rows)
    names.push_back(row[0].get<std::string>());
  return names;
}

}  // namespace trainyard::db::testing
