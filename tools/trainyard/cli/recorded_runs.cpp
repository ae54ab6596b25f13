#include "tools/trainyard/cli/recorded_runs.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <iostream>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/file.h>

#include "base/error.h"
#include "base/fd.h"
#include "base/files.h"
#include "base/host.h"
#include "base/named_row.h"
#include "base/number.h"
#include "base/sha256.h"
#include "base/text.h"
#include "db/ingest/ingest.h"
#include "db/ingest/maintenance.h"
#include "experiments/config/config.h"
#include "experiments/file/file.h"
#include "experiments/protocol/launch.h"
#include "experiments/protocol/record.h"
#include "experiments/protocol/record_lines.h"
#include "models/catalogue.h"
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
  std::int64_t seed = 0, processes = 1, epochs = 1;
  nlohmann::json info;                             // its run.json
  std::vector<std::vector<nlohmann::json>> ranks;  // records, if it was not added before
  bool was_added = false;
  Place place() const { return {model, strategy, seed}; }
};

// A name for the experiment file. Other characters become "-", and then a hash keeps names apart.
std::string as_name(const std::string& text) {
  constexpr std::size_t longest = 40;
  std::string name = experiments::experiment_name(text).substr(0, longest);
  return name == text ? name : name + "-" + sha256_hex(text).substr(0, 4);
}

// "2-processes---lr-0.1": the arguments without the script and the seed.
std::string strategy_of(const RecordedRun& run) {
  std::string name = processes_name(run.processes);
  for (std::size_t i = 2; i < run.command.size(); ++i) {
    if (run.command[i] == "--seed")
      ++i;
    else if (!run.command[i].starts_with("--seed="))
      name += "-" + run.command[i];
  }
  return as_name(name);
}

std::vector<nlohmann::json> records_in(const fs::path& file) {
  std::vector<nlohmann::json> records;
  experiments::RecordLines lines;
  if (fs::exists(file)) lines.add(whole_file(file));
  while (const auto line = lines.next())
    if (auto parsed = experiments::parse_line(*line); parsed.record)
      records.push_back(std::move(parsed.record->body));
  return records;
}

bool has_ended(const std::vector<nlohmann::json>& records) {
  return !records.empty() && records.back().value("type", "") == "end";
}

// The folder that the run was added as. Empty if it was not, or to another yard.
fs::path attempt_of(const orchestrator::Yard& yard, const fs::path& folder) {
  const std::string added = first_line(whole_file(folder / added_name));
  const std::size_t slash = added.find('/');
  if (slash == std::string::npos) return {};
  const auto attempt = parse_number<int>(added.substr(slash + 1));
  const fs::path found = attempt ? yard.attempt(added.substr(0, slash), *attempt) : fs::path();
  return fs::exists(found / experiments::run_file_name) ? found : fs::path();
}

// UserError or nlohmann::json::exception if the folder is not a recorded run.
RecordedRun recorded_run(const orchestrator::Yard& yard, const fs::path& folder) {
  RecordedRun run;
  run.folder = folder;
  run.info = nlohmann::json::parse(whole_file(folder / experiments::run_file_name));
  run.command = run.info.at("command").get<std::vector<std::string>>();
  run.created = run.info.at("created").get<std::string>();
  run.seed = run.info.at("seed").get<std::int64_t>();
  run.processes = run.info.at("world_size").get<std::int64_t>();
  constexpr std::int64_t most_processes = 65536;
  if (run.command.size() < 2 || run.seed < 0 || run.processes < 1 || run.processes > most_processes)
    throw UserError("its command, seed or number of processes is impossible");
  run.script = run.command[1];
  run.model = model_of_script(run.script);
  run.strategy = strategy_of(run);
  if (const fs::path attempt = attempt_of(yard, folder); !attempt.empty()) {
    run.was_added = true;
    run.epochs = experiments::read_launch(attempt / experiments::run_file_name).run.epochs;
    return run;
  }
  for (int rank = 0; rank < run.processes; ++rank)
    run.ranks.push_back(records_in(folder / experiments::rank_records_name(rank)));
  run.epochs = std::max<std::int64_t>(1, std::ranges::count_if(run.ranks.at(0), [](const auto& record) {
                                        return record.value("type", "") == "epoch";
                                      }));
  return run;
}

// Whether a process has the file open to record: the recorder locks it.
bool is_locked(const fs::path& file) {
  const auto fd = FileDescriptor::open(file, O_RDONLY | O_NOFOLLOW);
  return fd && ::flock(fd.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

// False also for a run on another host that has not ended: nobody here knows whether it lives.
bool is_over(const RecordedRun& run) {
  if (std::ranges::all_of(run.ranks, has_ended)) return true;
  if (run.info.at("host") != host_name()) return false;
  for (int rank = 0; rank < run.processes; ++rank)
    if (is_locked(run.folder / experiments::rank_records_name(rank))) return false;
  return true;
}

// Scripts with one name in several folders are several models. The first one keeps the name, as its runs may be added.
void keep_scripts_apart(std::vector<RecordedRun>& runs) {
  std::map<std::string, std::string> first;  // path of the script, by model
  // Copies have the same time: those that were added come first.
  std::ranges::sort(
      runs, {}, [](const RecordedRun& run) { return std::tuple(run.created, !run.was_added, run.folder); });
  for (RecordedRun& run : runs) {
    const std::string path = (fs::path(run.info.at("folder").get<std::string>()) / run.script).string();
    if (first.emplace(run.model, path).first->second != path)
      run.model += "-" + sha256_hex(path).substr(0, 4);
  }
}

using RunsByPlace = std::map<Place, const RecordedRun*>;

// The experiment file of these runs. Each is a column of the matrix.
std::string file_of(const RunsByPlace& runs) {
  std::map<std::string, std::int64_t> strategies;  // to the number of processes
  std::set<std::string> models;
  for (const auto& [place, run] : runs) {
    strategies.emplace(run->strategy, run->processes);
    models.insert(run->model);
  }
  const auto column = [&](const char* name, auto text) {
    return fmt::format("{} = [{}]\n", name, joined(runs, [&](const auto& one) { return text(*one.second); }));
  };
  std::string text = "name = \"recorded\"\n[[matrix.zip]]\n";
  text += column("model", [](const RecordedRun& run) { return toml_text(run.model); });
  text += column("strategy", [](const RecordedRun& run) { return toml_text(run.strategy); });
  text += column("seed", [](const RecordedRun& run) { return std::to_string(run.seed); });
  text += column("epochs", [](const RecordedRun& run) { return std::to_string(run.epochs); });
  text += "[defaults]\ndataset = \"recorded\"\n[dataset.recorded]\ntitle = \"as the script reads it\"\n";
  if (strategies.size() > 1) {
    const auto first = std::ranges::min_element(
        strategies, {}, [](const auto& one) { return std::pair(one.second, one.first); });
    text += fmt::format("[compare]\naxis = \"strategy\"\nbaseline = {}\npair = [\"seed\"]\n",
                        toml_text(first->first));
  }
  for (const std::string& model : models)
    text += fmt::format("[model.{}]\ntitle = {}\n", toml_text(model), toml_text(model));
  for (const auto& [name, one] : strategies)
    text +=
        fmt::format("[strategy.{0}]\nreplicas = {1}\ncommand = [\"recorded\", {0}]\n", toml_text(name), one);
  return text;
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
    if (records.empty()) return "a process of the script has recorded nothing";
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
  std::vector<std::string> lines;
  for (std::size_t rank = 0; rank < recorded.ranks.size(); ++rank) {
    std::string text;
    for (const nlohmann::json& body : recorded.ranks[rank]) {
      nlohmann::ordered_json record(body);
      record["run"] = launch.key;
      record["attempt"] = launch.attempt;
      lines.push_back(experiments::sealed_line(record));
      text += lines.back() + "\n";
    }
    write_whole_file(launch.records / experiments::rank_records_name(static_cast<int>(rank)), text);
  }
  if (const std::string failure = failure_of(recorded); !failure.empty()) {
    const fs::path file = launch.records / experiments::orchestrator_records_name;
    experiments::RecordWriter(file, launch.key, launch.attempt, std::nullopt)
        .append("cause", {{"outcome", "failed"}, {"error", failure}});
    lines.push_back(first_line(whole_file(file)));
  }
  experiments::write_launch(launch);  // last, so that an attempt is whole
  ingest.run_file(experiments::to_json(launch));
  for (const std::string& line : lines)
    if (const auto parsed = experiments::parse_line(line); parsed.record) ingest.record(*parsed.record);
  write_whole_file(recorded.folder / added_name, fmt::format("{}/{}\n", launch.key, launch.attempt));
}

// The yard is locked. `runs`: those that were added before, too, in the order of their creation.
void add_all(const orchestrator::Yard& yard, const std::vector<RecordedRun>& runs) {
  RunsByPlace last;
  for (const RecordedRun& run : runs) last.insert_or_assign(run.place(), &run);
  auto loaded = experiments::load_text(file_of(last), yard.root() / "recorded.toml");
  if (!loaded.experiment)
    throw UserError("cannot make an experiment of the recorded runs: " + to_text(loaded.problems.at(0)));
  experiments::Experiment& experiment = *loaded.experiment;
  experiments::resolve_data(experiment, std::nullopt);
  std::map<Place, const experiments::Run*> runs_by_place;
  for (experiments::Run& run : experiment.runs) {
    Place place{run.model, run.strategy.name, run.seed};
    complete(run, *last.at(place));
    runs_by_place.emplace(std::move(place), &run);
  }
  db::Database database = db::open_yard_for_writing(yard.root());
  db::Ingest ingest(database);
  const nlohmann::json entry = orchestrator::run_entry(experiment, {}, {{recorded_mark, true}});
  orchestrator::append_to_journal(yard.journal(), entry);
  ingest.journal_entry(entry);
  std::size_t added = 0;
  for (const RecordedRun& recorded : runs) {
    if (recorded.was_added) continue;
    experiments::Run run = *runs_by_place.at(recorded.place());
    complete(run, recorded);
    add(yard, recorded, experiment, run, ingest);
    ++added;
  }
  std::cerr << fmt::format("added {} of {} to {}\n", counted(added, "run"),
                           (yard.root() / "recorded").string(), yard.root().string());
  if (runs.size() > last.size())
    std::cerr << fmt::format(
        "note: {} replaced by later ones with the same script, arguments, processes and seed\n",
        counted(runs.size() - last.size(), "recorded run"));
}

}  // namespace

std::string toml_text(const std::string& text) {
  return nlohmann::json(text).dump();  // texts of JSON are texts of TOML
}

std::string model_of_script(const fs::path& script) {
  const std::string name = as_name(script.stem().string());
  return row_or_null(models::catalogue(), &models::Model::name, name) == nullptr ? name : name + "-script";
}

std::string processes_name(std::int64_t processes) {
  return processes == 1 ? "1-process" : fmt::format("{}-processes", processes);
}

void add_recorded_runs(const orchestrator::Yard& yard) {
  const fs::path all = yard.root() / "recorded";
  if (!fs::is_directory(all)) return;
  std::vector<fs::path> folders;
  bool has_new = false;
  for (const auto& entry : fs::directory_iterator(all)) {
    if (!fs::exists(entry.path() / experiments::run_file_name)) continue;
    folders.push_back(entry.path());
    has_new = has_new || attempt_of(yard, entry.path()).empty();
  }
  constexpr int most_waits = 100;  // for another command that adds the first ones
  for (int waits = 0; waits < most_waits && has_new && !yard.exists() && orchestrator::in_use(yard); ++waits)
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  if (!has_new || !orchestrator::may_write(yard)) return;
  std::optional<orchestrator::YardLock> lock;
  try {
    lock.emplace(yard, "adding recorded runs");
  } catch (const UserError&) {  // a sweep has the yard: a later command adds them
    return;
  }
  std::vector<RecordedRun> runs;
  std::size_t running = 0;
  for (const fs::path& folder : folders) try {
      RecordedRun run = recorded_run(yard, folder);
      if (run.was_added || is_over(run))
        runs.push_back(std::move(run));
      else
        ++running;
    } catch (const std::exception& error) {
      std::cerr << fmt::format("note: {} is left out, because it is not a recorded run: {}\n",
                               folder.string(), error.what());
    }
  if (running > 0)
    std::cerr << fmt::format("note: {} of {} still being recorded\n", counted(running, "run"), all.string());
  if (std::ranges::all_of(runs, &RecordedRun::was_added)) return;
  keep_scripts_apart(runs);
  add_all(yard, runs);
}

}  // namespace trainyard::tools
