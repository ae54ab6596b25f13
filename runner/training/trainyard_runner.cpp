// trainyard-runner: trains one rank of one run. The environment contains its rank, and $TRAINYARD_RUN is the
// path of the launch file.
#include <filesystem>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <link.h>
#include <unistd.h>

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "runner/communicator/nccl_communicator.h"
#include "runner/device/device.h"
#include "runner/device/rank_process.h"
#include "runner/parity/reference_batch.h"
#include "runner/training/rank_records.h"
#include "runner/training/training.h"

namespace {

using namespace trainyard;

constexpr const char* about = "Train one rank of one run. The environment sets the run and the rank.";

constexpr const char* environment_and_codes = R"(Environment:
  TRAINYARD_RUN                      path of run.json: the run, and the folder for records
  RANK, WORLD_SIZE                   rank and number of ranks (default: a single rank)
  LOCAL_RANK, LOCAL_WORLD_SIZE       the same among the ranks on this host (default: all ranks are on it)
  TRAINYARD_STORE                    new file for the rendezvous of ranks on one host, the same for all ranks
  MASTER_ADDR, MASTER_PORT           or the address of a rendezvous store, which trainyard-store prints
  TORCHELASTIC_USE_AGENT_STORE=True  the store is already served (default: rank 0 serves it)
  TORCHELASTIC_RUN_ID                prefix of this launch in the store
  TRAINYARD_LOG                      level of the log on stderr: trace, debug, info, warning, error, off

Exit code: 0 done, 1 failed (with the reason on stderr and in the last record), 2 wrong arguments,
143 ended by SIGTERM.)";

// Exits without destructors. After an error they must not call collectives, and after success they only cost
// time.
[[noreturn]] void exit_at_once(int code) {
  std::cout.flush();
  std::cerr.flush();
  _exit(code);
}

// A lost peer is our CommunicationError from Gloo and NCCL, and LibTorch's DistError from the store.
experiments::EndReason reason_of(const std::exception& error) {
  const bool by_peer = dynamic_cast<const runner::CommunicationError*>(&error) != nullptr ||
                       dynamic_cast<const c10::DistError*>(&error) != nullptr;
  return by_peer ? experiments::EndReason::peer_lost : experiments::EndReason::failed;
}

[[noreturn]] void fail(const std::exception& error, runner::RankRecords* records) {
  const std::string text = first_line(error.what());
  std::cerr << "error: " << text << std::endl;
  try {
    if (records) records->failed(text, reason_of(error));
  } catch (const std::exception& second) {
    std::cerr << "error: could not record this failure: " << trainyard::first_line(second.what())
              << std::endl;
  }
  exit_at_once(1);
}

// Checks that the folder for records is the folder of the launch file. A file must not redirect records.
void check_records(const experiments::Launch& launch, const std::filesystem::path& run_file) {
  std::error_code none;
  if (!std::filesystem::equivalent(launch.records, std::filesystem::absolute(run_file).parent_path(), none))
    throw UserError("records is " + launch.records.string() + ", but must be the folder of this file",
                    "use --records DIR to write to another folder", {.file = run_file.string()});
}

// Refuses a second start of a rank: its records would follow those of the first one, which may have finished the run.
void require_no_records(const std::filesystem::path& file) {
  std::error_code none;
  const std::uintmax_t size = std::filesystem::file_size(file, none);
  if (none || size == 0) return;
  throw UserError("has records already, and this rank would append to them",
                  "use --records DIR with a new folder, or `trainyard run` for another attempt",
                  {.file = file.string()});
}

// Writes records to `records_folder` if it is given, else to the folder of the launch.
[[noreturn]] void run_rank(const std::optional<std::string>& records_folder,
                           const std::optional<std::string>& replays) {
  runner::die_with_parent();
  runner::exit_on_sigterm();
  runner::report_at_terminate();
  std::optional<runner::RankRecords> records;
  try {
    log::to_standard_error(log::level_from_environment());
    const runner::Environment environment = runner::read_environment();
    experiments::Launch launch = experiments::read_launch(environment.run_file);
    launch.run.strategy = launch.strategy();
    if (records_folder) {
      std::filesystem::create_directories(*records_folder);
      launch.records = *records_folder;
      launch.run.checkpoint = "";  // do not change the checkpoints of the run
      if (replays) {
        launch.resumes.reset();
        launch.probe = false;
        launch.run.save = "";
      }
    } else {
      check_records(launch, environment.run_file);
    }
    require_no_records(launch.records / experiments::rank_records_name(environment.rank));
    records.emplace(launch, environment.rank);
    runner::name_device(launch, environment);
    runner::train(launch, environment, *records, replays);
  } catch (const std::exception& error) {
    fail(error, records ? &*records : nullptr);
  }
  exit_at_once(0);
}

// Paths of the shared libraries of this process.
std::vector<std::string> loaded_libraries() {
  std::vector<std::string> paths;
  const auto add = [](dl_phdr_info* library, std::size_t, void* to) {
    if (*library->dlpi_name == '/')
      static_cast<std::vector<std::string>*>(to)->emplace_back(library->dlpi_name);
    return 0;
  };
  ::dl_iterate_phdr(add, &paths);
  return paths;
}

void print_versions(bool as_json) {
  runner::Versions versions = runner::versions();
  if (!as_json) {
    std::cout << runner::to_text(versions) << "\n";
    return;
  }
  if (const std::string loaded = runner::nccl_version(); !loaded.empty()) versions.nccl = loaded;
  nlohmann::ordered_json facts = runner::to_json(versions);
  facts["gpus"] = runner::to_json(runner::gpus());
  facts["libraries"] = loaded_libraries();
  std::cout << facts << "\n";
}

[[noreturn]] void check_network(const std::string& file) {
  try {
    const runner::ReferenceCheck check = runner::check_reference(file);
    if (check.not_compared.empty())
      std::cout << "computes what PyTorch computed: " << check.tensors << " tensors compared\n";
    else
      std::cout << "was not compared with PyTorch: " << check.not_compared << "\n";
  } catch (const std::exception& error) {
    fail(error, nullptr);
  }
  exit_at_once(0);
}

}  // namespace

int main(int argc, char** argv) {
  runner::tune_allocator();
  CLI::App program(about, "trainyard-runner");
  std::optional<std::string> records;
  std::optional<std::string> network, replays;
  bool version = false, json = false;
  auto* const folder = program.add_option(
      "--records", records,
      "write records to this new folder, not to that of run.json (to repeat a rank by hand)");
  folder->type_name("DIR");
  program
      .add_option("--replay", replays,
                  "train a run of asynchronous servers again in this process, from the logs in this folder")
      ->type_name("DIR")
      ->needs(folder);
  program
      .add_option("--check-network", network,
                  "compute the reference batch of this exported network, compare it with PyTorch, and end")
      ->type_name("FILE")
      ->excludes(folder);
  auto* const versions = program.add_flag("--version", version, "print the versions")->excludes(folder);
  program.add_flag("--json", json, "print versions, visible GPUs and loaded libraries as JSON")
      ->needs(versions);
  program.footer(environment_and_codes);
  try {
    program.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return program.exit(error) == 0 ? 0 : 2;
  }
  if (network) check_network(*network);
  if (!version) run_rank(records, replays);
  print_versions(json);
  return 0;
}
