#include "tools/trainyard/cli/recorded_runs.h"

#include <algorithm>
#include <cctype>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <iostream>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "base/host.h"
#include "base/text.h"
#include "db/ingest/ingest.h"
#include "db/ingest/maintenance.h"
#include "experiments/file/file.h"
#include "experiments/protocol/launch.h"
#include "experiments/protocol/record.h"
#include "experiments/protocol/record_lines.h"
#include "orchestrator/yard/journal.h"

namespace trainyard::tools {

namespace {

namespace fs = std::filesystem;

constexpr const char* added_name = "added";  // file with the run and attempt that a folder has become

using Place = std::tuple<std::string, std::string, std::int64_t>;  // model, strategy, seed

struct RecordedRun {
  fs::path folder;
  std::string script, model, strategy, created;
  std::vector<std::string> command;
  std::int64_t seed = 0, processes = 1, epochs = 0;
  nlohmann::json info;                                     // its run.json
  std::vector<std::vector<nlohmann::ordered_json>> ranks;  // records
  Place place() const { return {model, strategy, seed}; }
};

// Letters, digits, "-", "_", "." and "=" stay.
std::string as_name(const std::string& text) {
  std::string name = text;
  std::ranges::replace_if(
      name,
      [](unsigned char c) {
        return std::isalnum(c) == 0 &&
               std::string_view("-_.=").find(static_cast<char>(c)) == std::string_view::npos;
      },
      '-');
  return name;
}

// "2-processes --lr=0.1": arguments without the script and the seed.
std::string strategy_of(const RecordedRun& run) {
  std::string name = run.processes == 1 ? "1-process" : fmt::format("{}-processes", run.processes);
  for (std::size_t i = 2; i < run.command.size(); ++i) {
    if (run.command[i] == "--seed")
      ++i;
    else if (!run.command[i].starts_with("--seed="))
      name += "-" + as_name(run.command[i]);
  }
  return name;
}

std::vector<nlohmann::ordered_json> records_in(const fs::path& file) {
  std::vector<nlohmann::ordered_json> records;
  experiments::RecordLines lines;
  if (fs::exists(file)) lines.add(whole_file(file));
  while (const auto line = lines.next())
    if (auto record = nlohmann::ordered_json::parse(*line, nullptr, false); record.is_object())
      records.push_back(std::move(record));
  return records;
}

bool has_ended(const std::vector<nlohmann::ordered_json>& records) {
  return !records.empty() && records.back().value("type", "") == "end";
}

RecordedRun recorded_run(const fs::path& folder) {
  RecordedRun run;
  run.folder = folder;
  run.info = nlohmann::json::parse(whole_file(folder / experiments::run_file_name));
  run.command = run.info.at("command").get<std::vector<std::string>>();
  run.script = run.command.at(1);
  run.model = as_name(fs::path(run.script).stem().string());
  run.created = run.info.at("created").get<std::string>();
  run.seed = run.info.at("seed").get<std::int64_t>();
  run.processes = run.info.at("world_size").get<std::int64_t>();
  run.strategy = strategy_of(run);
  for (int rank = 0; rank < run.processes; ++rank)
    run.ranks.push_back(records_in(folder / experiments::rank_records_name(rank)));
  run.epochs = std::max<std::int64_t>(1, std::ranges::count_if(run.ranks.at(0), [](const auto& record) {
                                        return record.value("type", "") == "epoch";
                                      }));
  return run;
}

bool is_over(const RecordedRun& run) {
  const bool lives = run.info.at("host") == host_name() && ::kill(run.info.at("pid").get<pid_t>(), 0) == 0;
  return std::ranges::all_of(run.ranks, has_ended) || !lives;
}

std::string toml_text(const std::string& text) {
  return nlohmann::json(text).dump();  // texts of JSON are texts of TOML
}

// The experiment file of these runs. Each is a column of the matrix.
std::string file_of(const std::vector<RecordedRun>& runs) {
  std::map<std::string, std::pair<std::int64_t, const RecordedRun*>> strategies;
  std::set<std::string> models;
  for (const RecordedRun& run : runs) {
    strategies.emplace(run.strategy, std::pair(run.processes, &run));
    models.insert(run.model);
  }
  const auto column = [&](const char* name, auto text) {
    return fmt::format("{} = [{}]\n", name, joined(runs, text));
  };
  std::string text = fmt::format("name = {}\n[[matrix.zip]]\n",
                                 toml_text(models.size() == 1 ? *models.begin() : "recorded"));
  text += column("model", [](const RecordedRun& run) { return toml_text(run.model); });
  text += column("strategy", [](const RecordedRun& run) { return toml_text(run.strategy); });
  text += column("seed", [](const RecordedRun& run) { return std::to_string(run.seed); });
  text += column("epochs", [](const RecordedRun& run) { return std::to_string(run.epochs); });
  text += "[defaults]\ndataset = \"recorded\"\n[dataset.recorded]\ntitle = \"as the script reads it\"\n";
  if (strategies.size() > 1) {
    const auto first = std::ranges::min_element(
        strategies, {}, [](const auto& one) { return std::pair(one.second.first, one.first); });
    text += fmt::format("[compare]\naxis = \"strategy\"\nbaseline = {}\npair = [\"seed\"]\n",
                        toml_text(first->first));
  }
  for (const std::string& model : models)
    text += fmt::format("[model.{}]\ntitle = {}\n", toml_text(model), toml_text(model));
  for (const auto& [name, one] : strategies)
    text += fmt::format("[strategy.{}]\nreplicas = {}\ncommand = {}\n", toml_text(name), one.first,
                        nlohmann::json(one.second->command).dump());
  return text;
}

experiments::Experiment experiment_of(const orchestrator::Yard& yard, const std::vector<RecordedRun>& runs) {
  auto loaded = experiments::load_text(file_of(runs), yard.root() / "recorded.toml");
  if (!loaded.experiment)
    throw UserError("cannot make an experiment of the recorded runs: " + to_text(loaded.problems.at(0)));
  experiments::Experiment experiment = std::move(*loaded.experiment);
  experiments::resolve_data(experiment, std::nullopt);
  return experiment;
}

// What the experiment file does not say.
void complete(experiments::Run& run, const RecordedRun& recorded) {
  run.epochs = recorded.epochs;
  run.axes["epochs"] = recorded.epochs;
  run.strategy.command = recorded.command;
  run.strategy.folder = recorded.info.at("folder").get<std::string>();
  run.strategy.files = {{recorded.script, recorded.info.at("script_sha256").get<std::string>()}};
}

// Why the run has not finished. Empty if it has.
std::string failure_of(const RecordedRun& recorded) {
  for (const auto& records : recorded.ranks) {
    if (!has_ended(records)) return "the script ended without run.finish()";
    if (records.back().value("status", "") != "finished")
      return records.back().value("error", "the script failed");
  }
  return "";
}

// The next attempt of the run gets its records, on disk and in the database.
void add(const orchestrator::Yard& yard, const RecordedRun& recorded,
         const experiments::Experiment& experiment, const experiments::Run& run, db::Ingest& ingest) {
  experiments::Launch launch;
  launch.key = experiments::run_key(run);
  launch.experiment = experiment.name;
  launch.run = run;
  launch.attempt = orchestrator::last_attempt(yard.run(launch.key)) + 1;
  launch.records = yard.attempt(launch.key, launch.attempt);
  launch.devices.assign(static_cast<std::size_t>(recorded.processes), "cpu");
  launch.host_exclusive = false;
  launch.created = recorded.created;
  launch.circumstances.host = recorded.info.at("host").get<std::string>();
  launch.circumstances.processor = "processor not recorded";
  fs::create_directories(launch.records);
  experiments::write_launch(launch);
  ingest.run_file(experiments::to_json(launch));
  const auto take = [&](const std::string& line) {
    if (const auto parsed = experiments::parse_line(line); parsed.record) ingest.record(*parsed.record);
  };
  for (std::size_t rank = 0; rank < recorded.ranks.size(); ++rank) {
    std::string text;
    for (nlohmann::ordered_json record : recorded.ranks[rank]) {
      record["run"] = launch.key;
      record["attempt"] = launch.attempt;
      record.erase("crc");
      text += experiments::sealed_line(record) + "\n";
      take(experiments::sealed_line(record));
    }
    write_whole_file(launch.records / experiments::rank_records_name(static_cast<int>(rank)), text);
  }
  if (const std::string failure = failure_of(recorded); !failure.empty()) {
    const fs::path file = launch.records / experiments::orchestrator_records_name;
    experiments::RecordWriter(file, launch.key, launch.attempt, std::nullopt)
        .append("cause", {{"outcome", "failed"}, {"error", failure}});
    take(first_line(whole_file(file)));
  }
  write_whole_file(recorded.folder / added_name, fmt::format("{}/{}\n", launch.key, launch.attempt));
}

// `runs`: those that were added before, too.
void add_all(const orchestrator::Yard& yard, std::vector<RecordedRun> runs) {
  std::ranges::sort(runs, {}, &RecordedRun::created);
  std::map<Place, RecordedRun> last;
  for (const RecordedRun& run : runs) last.insert_or_assign(run.place(), run);
  std::vector<RecordedRun> planned;
  planned.reserve(last.size());
  for (const auto& [place, run] : last) planned.push_back(run);
  experiments::Experiment experiment = experiment_of(yard, planned);
  std::map<Place, experiments::Run*> runs_by_place;
  for (experiments::Run& run : experiment.runs) {
    Place place{run.model, run.strategy.name, run.seed};
    complete(run, last.at(place));
    runs_by_place.emplace(std::move(place), &run);
  }
  const orchestrator::YardLock lock(yard, "adding recorded runs");
  db::Database database = db::open_yard_for_writing(yard.root());
  db::Ingest ingest(database);
  const nlohmann::json entry = orchestrator::run_entry(experiment);
  orchestrator::append_to_journal(yard.journal(), entry);
  ingest.journal_entry(entry);
  std::size_t added = 0;
  for (const RecordedRun& recorded : runs) {
    if (fs::exists(recorded.folder / added_name)) continue;
    experiments::Run run = *runs_by_place.at(recorded.place());
    complete(run, recorded);
    add(yard, recorded, experiment, run, ingest);
    ++added;
  }
  std::cerr << fmt::format("added {} of {} to {}\n", counted(added, "run"),
                           (yard.root() / "recorded").string(), yard.root().string());
}

}  // namespace

void add_recorded_runs(const orchestrator::Yard& yard) {
  const fs::path all = yard.root() / "recorded";
  if (!fs::is_directory(all)) return;
  std::vector<RecordedRun> runs;
  std::size_t running = 0;
  bool is_new = false;
  for (const auto& entry : fs::directory_iterator(all)) {
    try {
      if (!fs::exists(entry.path() / experiments::run_file_name)) continue;
      RecordedRun run = recorded_run(entry.path());
      const bool was_added = fs::exists(entry.path() / added_name);
      if (!was_added && !is_over(run)) {
        ++running;
        continue;
      }
      is_new = is_new || !was_added;
      runs.push_back(std::move(run));
    } catch (const nlohmann::json::exception& error) {
      throw UserError(fmt::format("{} is not a recorded run: {}", entry.path().string(), error.what()),
                      "remove this folder");
    }
  }
  if (running > 0)
    std::cerr << fmt::format("note: {} of {} still being recorded\n", counted(running, "run"), all.string());
  if (is_new && orchestrator::may_write(yard) && !orchestrator::in_use(yard)) add_all(yard, std::move(runs));
}

}  // namespace trainyard::tools
