#include "orchestrator/rank/rank_agent.h"

#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <regex>
#include <sstream>
#include <thread>

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include "base/error.h"
#include "base/host.h"
#include "base/log.h"
#include "base/number.h"
#include "orchestrator/rank/job_hosts.h"
#include "orchestrator/rank/log_limit.h"
#include "orchestrator/rank/orphans.h"
#include "orchestrator/rank/store_relay.h"

namespace trainyard::orchestrator {

namespace fs = std::filesystem;

namespace {

using Clock = std::chrono::steady_clock;
constexpr auto rendezvous_patience = std::chrono::minutes(5);  // until all hosts have started their tasks
constexpr auto killed_together = std::chrono::milliseconds(300);
constexpr auto short_nap = std::chrono::milliseconds(50);
constexpr auto long_nap = std::chrono::milliseconds(200);

// First signal received. The loop forwards it.
volatile std::sig_atomic_t received_signal = 0;

extern "C" void note_signal(int number) {
  if (received_signal == 0) received_signal = number;
}

void note_signals() {
  struct sigaction action {};
  action.sa_handler = note_signal;
  for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2}) ::sigaction(number, &action, nullptr);
}

// Variables by which a launcher tells its tasks their positions.
struct Family {
  const char* launcher;
  const char* rank;
  const char* world_size;
  const char* local_rank;
  const char* local_world_size;  // a number, or Slurm's list of tasks per host
  const char* node;              // index in the list; null: it is a number
};
constexpr std::array<Family, 3> families{{
    {"slurm", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "SLURM_STEP_TASKS_PER_NODE",
     "SLURM_NODEID"},
    {"mpi", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE", nullptr},  // Open MPI
    {"mpi", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS",
     nullptr},  // MPICH and Intel MPI, by Hydra
}};

std::optional<int> count(const std::string& text) {
  const auto value = parse_number<int>(text);
  return value && *value >= 0 ? value : std::nullopt;
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr)
    throw UserError(std::string(name) + " is not set", "trainyard-rank must be started by a launcher");
  return value;
}

int count_in(const char* name) {
  const std::string text = variable(name);
  if (const auto value = count(text)) return *value;
  throw UserError(fmt::format("{}={} is not a number", name, text));
}

int local_world_size(const Family& family) {
  const std::string text = variable(family.local_world_size);
  const int node = family.node == nullptr ? 0 : count_in(family.node);
  if (const auto tasks = tasks_per_node(text, node)) return *tasks;
  throw UserError(fmt::format("{}={} is not a list of tasks per host", family.local_world_size, text));
}

// Position of this process, started by `launcher` ("slurm", "mpi"). UserError if a variable is missing or wrong.
TaskPlace task_place(const std::string& launcher) {
  const Family* family = nullptr;
  for (const Family& each : families)
    if (launcher == each.launcher && (family == nullptr || std::getenv(family->rank) == nullptr))
      family = &each;
  if (family == nullptr) throw UserError("launcher \"" + launcher + "\" starts no tasks");
  const TaskPlace place{count_in(family->rank), count_in(family->world_size), count_in(family->local_rank),
                        local_world_size(*family)};
  if (place.rank >= place.world_size)
    throw UserError(
        fmt::format("{}={} is out of range for {} ranks", family->rank, place.rank, place.world_size));
  return place;
}

class Task {
 public:
  Task(RankGroupFile group, const TaskPlace& place)
      : group_(std::move(group)), place_(place), parent_(::getppid()), folder_(group_.command.directory) {}

  int run() {
    const auto store = rendezvous();
    if (!store) return end({{-1, 0}, received_signal, host_name()});
    RankCommand command = group_.command.ranks.at(static_cast<std::size_t>(place_.rank));
    command.environment.merge(torchrun_environment(group_.command, place_, *store));
    add_network(command);
    RankExit exit{{}, 0, host_name()};
    {
      const auto process = start_process(command);
      log::info("rank starts", {{"rank", place_.rank},
                                {"of", place_.world_size},
                                {"host", host_name()},
                                {"store", store->host + ":" + store->port},
                                {"log", command.log}});
      exit.status = watch(*process, command.log);
      // The end of a job may reach the rank a moment before its task. Wait for it, so that it is not taken
      // for a failure of the rank.
      if (exit.status.signal != 0 && received_signal == 0) std::this_thread::sleep_for(killed_together);
      exit.received_signal = received_signal;
    }
    end_children_with(group_.command.token);
    return end(exit);
  }

 private:
  // The address of the store for the rank of this task. Empty if the task is ended before the rendezvous.
  std::optional<StoreAddress> rendezvous() {
    if (place_.world_size == 1) return StoreAddress{"127.0.0.1", "0"};
    write_rank_host(folder_, place_.rank, own_addresses());
    return place_.rank == 0 ? serve() : join();
  }

  StoreAddress serve() {
    store_.emplace(group_.store, folder_ / "store.log");
    const StoreAddress address = store_->address();
    auto hosts = std::make_shared<JobHosts>(place_.world_size, [folder = folder_](const auto& ranks) {
      fresh_listing(folder);
      JobHosts::Addresses found;
      for (const int rank : ranks)
        if (auto addresses = read_rank_host(folder, rank)) found.emplace(rank, std::move(*addresses));
      return found;
    });
    relay_ = store_gateway(LaunchSecret::make(folder_), address, group_.interface,
                           [hosts](const std::string& peer) { return hosts->contain(peer); });
    write_rendezvous(folder_, {relay_->port(), own_addresses(group_.interface)});
    first_host_ = host_name();
    return address;
  }

  std::optional<StoreAddress> join() {
    const auto deadline = Clock::now() + rendezvous_patience;
    while (Clock::now() < deadline) {
      fresh_listing(folder_);
      const auto endpoint = read_rendezvous(folder_);
      const auto secret = endpoint ? LaunchSecret::read(folder_) : std::nullopt;
      if (const auto gateway = secret ? find_gateway(*secret, *endpoint) : std::nullopt) {
        first_host_ = endpoint->addresses.front();
        relay_ = store_entrance(*secret, *gateway);
        return StoreAddress{"127.0.0.1", std::to_string(relay_->port())};
      }
      if (received_signal != 0 || ::getppid() != parent_) return std::nullopt;
      std::this_thread::sleep_for(long_nap);
    }
    throw UserError("could not reach the store of rank 0 within 5 minutes",
                    "check that the nodes reach each other and share " + folder_.string() +
                        "; the log of rank 0 lists refused addresses");
  }

  // What other libraries and programs of the rank use: the interface, unless the user has chosen one, and the
  // host of rank 0, because MASTER_ADDR is the near end of a relay.
  void add_network(RankCommand& command) const {
    if (place_.world_size > 1) command.environment["TRAINYARD_FIRST_HOST"] = first_host_;
    if (group_.interface.empty()) return;
    for (const char* variable : {"GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"})
      if (std::getenv(variable) == nullptr) command.environment.try_emplace(variable, group_.interface);
  }

  // Kills the rank if the launcher is gone, because nobody would wait for it.
  ExitStatus watch(const RankProcess& process, const fs::path& log) const {
    bool handed_on = false;
    while (true) {
      if (const auto status = process.poll()) return *status;
      if (received_signal != 0 && !handed_on) process.signal(SIGTERM);
      handed_on = received_signal != 0;
      if (::getppid() != parent_) process.signal(SIGKILL);
      shorten_log(log);
      pollfd polled{process.end_fd(), POLLIN, 0};
      ::poll(&polled, 1, static_cast<int>(short_nap.count()));
    }
  }

  int end(const RankExit& exit) {
    write_rank_exit(folder_, place_.rank, exit);
    log::write(exit.status.clean() ? log::Level::info : log::Level::warning, "rank ended",
               {{"rank", place_.rank},
                {"code", exit.status.code},
                {"signal", exit.status.signal},
                {"received_signal", exit.received_signal}});
    if (store_ && exit.status.clean()) wait_for_peers();
    if (store_) LaunchSecret::remove(folder_);
    if (exit.status.signal != 0) return 128 + exit.status.signal;
    return exit.status.code < 0 ? 143 : exit.status.code;
  }

  // Peers may need the store until they end. If the folder is removed, they do not.
  void wait_for_peers() const {
    for (int peer = 1; peer < place_.world_size; ++peer)
      while (received_signal == 0 && ::getppid() == parent_ && !read_rank_exit(folder_, peer) &&
             read_rank_exit(folder_, place_.rank)) {
        fresh_listing(folder_);
        std::this_thread::sleep_for(long_nap);
      }
  }

  RankGroupFile group_;
  TaskPlace place_;
  int parent_;
  fs::path folder_;
  std::string first_host_;
  std::optional<StoreProcess> store_;
  std::unique_ptr<SocketRelay> relay_;  // the gateway of rank 0, or the entrance of another rank
};

// Logs at the level of the ranks. The task itself may have started without the variable.
void open_log(const LaunchSpec& spec) {
  if (spec.ranks.empty()) return;
  const auto given = spec.ranks.front().environment.find(log::level_variable);
  if (given == spec.ranks.front().environment.end()) return;
  const auto level = log::level_named(given->second);
  if (!level) return;
  log::pass_on(*level);  // to the store
  log::to_standard_error(*level);
}

// Why this task must not start, for example because its job was requeued: it would write into the records of
// the first start.
std::string reason_to_refuse(const fs::path& folder, int rank) {
  const char* restarts = std::getenv("SLURM_RESTART_COUNT");
  if (restarts != nullptr && std::string(restarts) != "0") return "the job was requeued";
  if (read_rank_exit(folder, rank)) return "this rank has run before";
  return abandoned(folder) ? "this attempt was abandoned" : "";
}

}  // namespace

int run_rank_task(const fs::path& attempt_folder) {
  note_signals();
  ::unsetenv(token_variable);  // only for the ranks: the store must not be killed with them
  const Subreaper subreaper;
  auto group = read_rank_group_file(attempt_folder);
  if (!group) throw UserError("cannot read ranks.json in " + attempt_folder.string());
  open_log(group->command);
  const TaskPlace place = task_place(group->launcher);
  if (const std::string why = reason_to_refuse(attempt_folder, place.rank); !why.empty()) {
    std::cerr << "trainyard-rank: rank " << place.rank << " does not start: " << why << std::endl;
    return 75;  // EX_TEMPFAIL
  }
  try {
    if (static_cast<std::size_t>(place.world_size) != group->command.ranks.size())
      throw UserError(
          fmt::format("the job has {} tasks for {} ranks", place.world_size, group->command.ranks.size()));
    return Task(*group, place).run();
  } catch (const std::exception& error) {
    // the orchestrator reads the error of a rank from this log
    const auto& log =
        group->command.ranks.at(static_cast<std::size_t>(place.rank) % group->command.ranks.size()).log;
    if (std::FILE* file = std::fopen(log.c_str(), "a")) {
      std::fprintf(file, "error: %s\n", error.what());
      std::fclose(file);
    }
    write_rank_exit(attempt_folder, place.rank, {{1, 0}, 0, host_name()});
    throw;
  }
}

std::optional<int> tasks_per_node(const std::string& text, int index) {
  static const std::regex form(R"((\d+)(?:\(x(\d+)\))?)");
  int first = 0;  // number of hosts in the parts so far
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    std::smatch found;
    if (!std::regex_match(part, found, form)) return std::nullopt;
    first += found[2].matched ? count(found.str(2)).value_or(0) : 1;
    if (index < first) return count(found.str(1));
  }
  return std::nullopt;
}

std::map<std::string, std::string> torchrun_environment(const LaunchSpec& spec, const TaskPlace& place,
                                                        const StoreAddress& store) {
  const bool own_rendezvous = spec.foreign && place.world_size == 1;
  return {{"RANK", std::to_string(place.rank)},
          {"LOCAL_RANK", std::to_string(place.local_rank)},
          {"WORLD_SIZE", std::to_string(place.world_size)},
          {"LOCAL_WORLD_SIZE", std::to_string(place.local_world_size)},
          {"MASTER_ADDR", store.host},
          {"MASTER_PORT", store.port},
          {"TORCHELASTIC_RUN_ID", spec.run_id},
          {"TORCHELASTIC_USE_AGENT_STORE", own_rendezvous ? "False" : "True"}};
}

}  // namespace trainyard::orchestrator
