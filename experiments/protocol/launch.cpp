#include "experiments/protocol/launch.h"

#include <algorithm>
#include <array>
#include <set>

#include "base/error.h"
#include "base/files.h"
#include "base/json_members.h"
#include "base/plain_file.h"
#include "base/sha256.h"
#include "experiments/protocol/record.h"
#include "experiments/protocol/seal.h"

namespace trainyard::experiments {

using nlohmann::json;

json to_json(const Circumstances& circumstances) {
  json object = {{"host", circumstances.host},
                 {"libtorch", circumstances.libtorch},
                 {"nccl", circumstances.nccl},
                 {"processor", circumstances.processor},
                 {"ranks_per_device", circumstances.ranks_per_device},
                 {"release", circumstances.release},
                 {"threads_per_rank", circumstances.threads_per_rank}};
  // Only if they are there, so that other hashes stay unchanged.
  if (circumstances.communicator != "auto") object["communicator"] = circumstances.communicator;
  if (!circumstances.build.empty()) object["build"] = circumstances.build;
  if (!circumstances.environment.empty()) object["environment"] = circumstances.environment;
  return object;
}

Circumstances circumstances_from_json(const json& object) try {
  Circumstances circumstances;
  read(object.at("host"), circumstances.host);
  read(object.at("libtorch"), circumstances.libtorch);
  read(object.at("nccl"), circumstances.nccl);
  read(object.at("processor"), circumstances.processor);
  read(object.at("ranks_per_device"), circumstances.ranks_per_device);
  read(object.at("release"), circumstances.release);
  read(object.at("threads_per_rank"), circumstances.threads_per_rank);
  circumstances.communicator = object.value("communicator", circumstances.communicator);
  circumstances.build = object.value("build", circumstances.build);
  circumstances.environment = object.value("environment", circumstances.environment);
  return circumstances;
} catch (const json::exception& error) {
  throw InternalError(std::string("not the JSON of circumstances: ") + error.what());
}

std::string circumstances_hash(const Circumstances& circumstances) {
  return sha256_hex(to_json(circumstances).dump()).substr(0, 12);
}

bool may_change_speed(std::string_view variable) {
  static constexpr std::array beginnings{"ATEN_", "DNNL_", "ONEDNN_", "MKL_",  "OMP_",
                                         "KMP_",  "GOMP_", "MALLOC_", "NCCL_", "PYTORCH_"};
  if (variable == "OMP_NUM_THREADS") return false;
  return variable == "LD_PRELOAD" || std::ranges::any_of(beginnings, [&](const char* beginning) {
           return variable.starts_with(beginning);
         });
}

std::vector<SettingDifference> differing_settings(const Circumstances& first, const Circumstances& second) {
  std::vector<SettingDifference> differences;
  const auto compare = [&](const std::string& name, const std::string& one, const std::string& other) {
    if (one != other) differences.push_back({name, one, other});
  };
  const auto build_of = [](const Circumstances& of) { return of.build.empty() ? "not recorded" : of.build; };
  compare("build", build_of(first), build_of(second));
  std::set<std::string> names;
  for (const Circumstances* each : {&first, &second})
    for (const auto& [name, value] : each->environment) names.insert(name);
  const auto value_in = [](const Circumstances& of, const std::string& name) {
    const auto found = of.environment.find(name);
    return found == of.environment.end() ? "not set" : found->second;
  };
  for (const std::string& name : names) compare(name, value_in(first, name), value_in(second, name));
  return differences;
}

std::string to_text(const SettingDifference& difference) {
  return difference.name + " " + difference.second + " against " + difference.first;
}

std::string gpu_of_task(std::size_t rank) {
  return "cuda of task " + std::to_string(rank);
}

Strategy Launch::strategy() const {
  Strategy own = run.strategy;
  if (membership) own.replicas = membership->replicas;
  return own;
}

json to_json(const Launch& launch) {
  json object = {{"v", format_version},
                 {"run", launch.key},
                 {"attempt", launch.attempt},
                 {"records", launch.records.string()},
                 {"experiment", launch.experiment},
                 {"seed", launch.run.seed},
                 {"epochs", launch.run.epochs},
                 {"work", to_json(launch.run)},
                 {"devices", launch.devices},
                 {"cores", launch.cores},
                 {"host_exclusive", launch.host_exclusive},
                 {"devices_shared", launch.devices_shared},
                 {"probe", launch.probe},
                 {"circumstances", to_json(launch.circumstances)},
                 {"circumstances_hash", circumstances_hash(launch.circumstances)},
                 {"world_size", launch.strategy().world_size()},
                 {"created", launch.created}};
  object["axes"] = object["work"]["axes"];
  if (!launch.commit.empty()) object["commit"] = launch.commit;
  if (!launch.checkpoints.empty()) object["checkpoints"] = launch.checkpoints.string();
  if (!launch.times_needed) object["times_needed"] = false;
  if (launch.retries_left > 0) object["retries_left"] = launch.retries_left;
  if (launch.resumes) {
    object["resumes_attempt"] = launch.resumes->attempt;
    object["resumes_after_epoch"] = launch.resumes->after_epoch;
  }
  if (launch.membership)
    object["membership"] = {{"replicas", launch.membership->replicas}, {"cause", launch.membership->cause}};
  return object;
}

Launch launch_from_json(const json& object) try {
  if (const int version = read_as<int>(object.at("v")); version != format_version)
    throw UserError("the run file has version " + std::to_string(version) +
                    ", but this program reads version " + std::to_string(format_version));
  Launch launch;
  read(object.at("run"), launch.key);
  read(object.at("attempt"), launch.attempt);
  launch.records = object.at("records").get<std::string>();
  read(object.at("experiment"), launch.experiment);
  launch.run = run_from_json(object.at("work"));
  read(object.at("devices"), launch.devices);
  read(object.at("cores"), launch.cores);
  read(object.at("host_exclusive"), launch.host_exclusive);
  read(object.at("devices_shared"), launch.devices_shared);
  read(object.at("probe"), launch.probe);
  launch.times_needed = object.value("times_needed", true);
  if (object.contains("retries_left")) read(object.at("retries_left"), launch.retries_left);
  launch.circumstances = circumstances_from_json(object.at("circumstances"));
  read(object.at("created"), launch.created);
  launch.commit = object.value("commit", std::string());
  launch.checkpoints = object.value("checkpoints", std::string());
  if (object.contains("resumes_attempt"))
    launch.resumes = Resumes{read_as<int>(object.at("resumes_attempt")),
                             read_as<std::int64_t>(object.at("resumes_after_epoch"))};
  if (const auto found = object.find("membership"); found != object.end())
    launch.membership =
        Membership{read_as<std::int64_t>(found->at("replicas")), found->at("cause").get<std::string>()};
  return launch;
} catch (const json::exception& error) {
  throw InternalError(std::string("not the JSON of a launch: ") + error.what());
}

void write_launch(const Launch& launch) {
  write_whole_file(launch.records / run_file_name, sealed(to_json(launch).dump(2)) + '\n');
}

RunFile run_file_from_text(std::string_view text) try {
  RunFile file;
  file.content = json::parse(text);
  if (const std::string problem = seal_problem(text, file.content); !problem.empty())
    throw UserError(problem);
  file.launch = launch_from_json(file.content);
  file.content.erase("crc");
  return file;
} catch (const json::parse_error& error) {
  throw UserError("not JSON at byte " + std::to_string(error.byte));
} catch (const json::exception& error) {
  throw UserError(std::string("not JSON: ") + error.what());
} catch (const InternalError& error) {
  throw UserError(error.what());
}

Launch read_launch(const std::filesystem::path& run_file) {
  const PlainContent content = plain_content(run_file, longest_run_file);
  if (!content.problem.empty())
    throw UserError("cannot read the run file: " + content.problem,
                    "check that it is a plain file and that you can read it", {.file = run_file.string()});
  try {
    return run_file_from_text(content.text).launch;
  } catch (const UserError& error) {
    throw UserError(error.what(), "trainyard writes this file before it launches a run",
                    {.file = run_file.string()});
  }
}

}  // namespace trainyard::experiments
