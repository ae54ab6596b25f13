// Which rank a task is: every launcher has variables of its own for it.
#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>

#include "base/error.h"
#include "orchestrator/rank/rank_task.h"

namespace trainyard::orchestrator {

namespace {

struct Family {
  const char* launcher;
  const char* rank;
  const char* world_size;
  const char* local_rank;
  const char* local_world_size;  // a number, or Slurm's list of tasks a host
  const char* node;              // which of the list; null: it is a number
};
constexpr std::array<Family, 3> families{{
    {"slurm", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "SLURM_STEP_TASKS_PER_NODE",
     "SLURM_NODEID"},
    {"mpi", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE", nullptr},  // Open MPI
    {"mpi", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS",
     nullptr},  // MPICH and Intel MPI, by Hydra
}};

std::optional<int> number(const std::string& text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

std::string text_of(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr)
    throw UserError(std::string(name) + " is not set", "trainyard-rank is started by a launcher");
  return value;
}

int number_of(const char* name) {
  const std::string text = text_of(name);
  if (const auto value = number(text)) return *value;
  throw UserError(std::string(name) + "=" + text + " is not a number");
}

int local_world_size(const Family& family) {
  const std::string text = text_of(family.local_world_size);
  const int node = family.node == nullptr ? 0 : number_of(family.node);
  if (const auto tasks = tasks_per_node(text, node)) return *tasks;
  throw UserError(std::string(family.local_world_size) + "=" + text +
                  " does not say how many tasks a host has");
}

}  // namespace

std::optional<int> tasks_per_node(const std::string& text, int index) {
  int first = 0;  // host of the part that is looked at
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string part = text.substr(begin, end - begin);
    const auto times = part.find("(x");
    const auto tasks = number(part.substr(0, times));
    std::optional<int> hosts = 1;
    if (times != std::string::npos)
      hosts = part.back() == ')' ? number(part.substr(times + 2, part.size() - times - 3)) : std::nullopt;
    if (!tasks || !hosts) return std::nullopt;
    first += *hosts;
    if (index < first) return tasks;
    begin = end + 1;
  }
  return std::nullopt;
}

TaskPlace task_place(const std::string& launcher) {
  const Family* family = nullptr;
  for (const Family& each : families)
    if (launcher == each.launcher && (family == nullptr || std::getenv(family->rank) == nullptr))
      family = &each;
  if (family == nullptr) throw UserError("launcher \"" + launcher + "\" has no tasks");
  const TaskPlace place{number_of(family->rank), number_of(family->world_size), number_of(family->local_rank),
                        local_world_size(*family)};
  if (place.rank >= place.world_size)
    throw UserError(std::string(family->rank) + "=" + std::to_string(place.rank) + " in a world of " +
                    std::to_string(place.world_size));
  return place;
}

}  // namespace trainyard::orchestrator
