#include "experiments/config/machine_keys.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <regex>

#include "base/named_row.h"
#include "experiments/config/config.h"
#include "experiments/config/key_lookup.h"

namespace trainyard::experiments {

namespace {

using Reader = std::function<bool(const TomlNode& item, Machine& machine)>;

std::optional<int> integer(const TomlNode& item, int least, int most = std::numeric_limits<int>::max()) {
  const auto* whole = std::get_if<std::int64_t>(&item.content);
  if (whole == nullptr || *whole < least || *whole > most) return std::nullopt;
  return static_cast<int>(*whole);
}

Reader integer_in(int least, int most, int Machine::*into) {
  return [=](const TomlNode& item, Machine& machine) {
    const auto number = integer(item, least, most);
    machine.*into = number.value_or(machine.*into);
    return number.has_value();
  };
}

// An integer >= 1.
Reader at_least_one(std::optional<int> Machine::*into) {
  return
      [=](const TomlNode& item, Machine& machine) { return (machine.*into = integer(item, 1)).has_value(); };
}

// One line of printable text. A text with a leading minus would be an option of a program.
Reader text(std::string Machine::*into) {
  return [=](const TomlNode& item, Machine& machine) {
    const std::string* text = item.text();
    if (text == nullptr || text->empty() || text->front() == '-') return false;
    if (std::ranges::any_of(*text, [](unsigned char c) { return c < ' ' || c == 127; })) return false;
    machine.*into = *text;
    return true;
  };
}

Reader text_like(const char* form, std::string Machine::*into) {
  return [read = text(into), form = std::regex(form), into](const TomlNode& item, Machine& machine) {
    return read(item, machine) && std::regex_match(machine.*into, form);
  };
}

Reader choice_of(const std::vector<std::string>& choices, std::string Machine::*into) {
  return [=](const TomlNode& item, Machine& machine) {
    if (item.text() == nullptr || !contains(choices, *item.text())) return false;
    machine.*into = *item.text();
    return true;
  };
}

bool read_devices(const TomlNode& item, Machine& machine) {
  machine.devices = integer(item, 1);
  return machine.devices || (item.text() != nullptr && *item.text() == "auto");
}

bool read_exclusive(const TomlNode& item, Machine& machine) {
  if (item.text() == nullptr || !contains({"host", "devices"}, *item.text())) return false;
  machine.exclusive_host = *item.text() == "host";
  return true;
}

bool read_timeout(const TomlNode& item, Machine& machine) {
  const auto* whole = std::get_if<std::int64_t>(&item.content);
  const auto* number = std::get_if<double>(&item.content);
  const double seconds = whole ? static_cast<double>(*whole) : number ? *number : -1;
  if (seconds < 0 || !std::isfinite(seconds)) return false;
  machine.progress_timeout_seconds = seconds;
  return true;
}

bool read_options(const TomlNode& item, Machine& machine) {
  if (item.list() == nullptr) return false;
  for (const TomlNode& each : *item.list()) {
    const std::string* text = path_or_argument(each);
    if (text == nullptr) return false;
    machine.options.push_back(*text);
  }
  return true;
}

}  // namespace

std::span<const MachineKey> machine_keys() {
  static const std::vector<std::string> all, local{"local"}, slurm{"slurm"}, mpi{"mpi"},
      clusters{"slurm", "mpi"}, launchers = names_of(launcher_rules(), &LauncherRules::name);
  static const std::vector<MachineKey> rows{
      {"launcher", allowed_text(choice("launcher", launchers)), "\"local\"", all,
       "what starts the ranks: this host, Slurm jobs, or mpirun", choice_of(launchers, &Machine::launcher)},
      {"accelerator", "one of \"auto\", \"cpu\", \"cuda\"", "\"auto\"", all,
       "what ranks train on; auto: GPUs if the host has some and LibTorch is a CUDA build, else CPU cores; "
       "on a cluster, GPUs if gpus_per_task is set",
       choice_of({"auto", "cpu", "cuda"}, &Machine::accelerator)},
      {"devices", "an integer >= 1 or \"auto\"", "\"auto\"", local,
       "most devices of this host in use at a time: GPUs, or groups of cores. A group has one core per "
       "thread of `threads`; without `threads` the groups are equal. auto: all GPUs; with `threads` one "
       "group per rank, but not more than the cores allow; without `threads` min(2, cores) groups",
       read_devices},
      {"exclusive", "one of \"host\", \"devices\"", "\"host\"", all,
       "a timed run has its hosts to itself; \"devices\" packs runs and flags their times", read_exclusive},
      {"communicator", "one of \"auto\", \"gloo\", \"nccl\"", "\"auto\"", all,
       "how ranks exchange gradients and activations; auto: nccl if each rank has its own GPU, else shared "
       "memory if all ranks of a run are on one host, else gloo",
       choice_of({"auto", "gloo", "nccl"}, &Machine::communicator)},
      {"progress_timeout", "a number of seconds >= 0 (0: none)", "1800", all,
       "a run that makes no progress for this time has failed", read_timeout},
      {"spool", "a folder", "", clusters,
       "folder that all hosts share; it holds runs/ instead of the yard, and the database stays in the yard",
       text(&Machine::spool)},
      {"allocation", "one of \"job\", \"shared\"", "", slurm,
       "one job per run, or one allocation for all runs; default: shared if trainyard itself runs inside an "
       "allocation, else job",
       choice_of({"job", "shared"}, &Machine::allocation)},
      {"jobs", "an integer >= 1", "100", slurm, "most jobs in the queue at a time",
       integer_in(1, 1'000'000, &Machine::jobs)},
      {"partition", "a text", "", slurm, "sbatch --partition", text(&Machine::partition)},
      {"account", "a text", "", slurm, "sbatch --account", text(&Machine::account)},
      {"qos", "a text", "", slurm, "sbatch --qos", text(&Machine::qos)},
      {"time_limit", "\"MINUTES\", \"H:MM:SS\" or \"D-HH:MM:SS\"", "", slurm,
       "time limit of each job, in the form of sbatch --time",
       text_like(R"((\d{1,4}-)?\d{1,6}(:\d\d){0,2})", &Machine::time_limit)},
      {"signal_before", "an integer of seconds in 0 … 65535", "120", slurm,
       "ranks get a signal to end this many seconds before the time limit",
       integer_in(0, 65535, &Machine::signal_before_seconds)},
      {"nodes", "an integer >= 1", "", slurm,
       "most hosts per run; a run never uses more hosts than it has ranks", at_least_one(&Machine::nodes)},
      {"cpus_per_task", "an integer >= 1", "1", clusters,
       "cores of each rank, and its threads unless `threads` of the run is lower",
       integer_in(1, 1 << 20, &Machine::cpus_per_task)},
      {"gpus_per_task", "an integer >= 1", "", slurm,
       "sbatch --gpus-per-task; each rank trains on one of them", at_least_one(&Machine::gpus_per_task)},
      {"interface", "the name of a network interface", "", clusters,
       "network interface of the nodes for the rendezvous, Gloo and NCCL, for example \"ib0\"; default: any "
       "for the rendezvous, else what Gloo and NCCL choose",
       // As Linux allows: at most 15 bytes, without a slash, a colon or a space.
       text_like("[A-Za-z0-9_.@-]{1,15}", &Machine::interface)},
      {"hosts", "a file", "", mpi, "host file of mpirun: one host per line", text(&Machine::hosts)},
      {"options", "a list of texts", "[]", clusters,
       "further arguments of sbatch (each \"--name\" or \"--name=value\") or mpirun, passed unchanged",
       read_options},
  };
  return rows;
}

}  // namespace trainyard::experiments
