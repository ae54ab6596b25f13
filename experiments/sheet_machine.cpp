// [machine] and [data]: where an experiment runs, and where its data lies.
#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <regex>

#include "experiments/sheet.h"
#include "experiments/vocabulary.h"
#include "models/datasets.h"
#include "models/nearest_name.h"

namespace trainyard::experiments {

namespace {

// What a name of the table does with a value; false where the value is none it takes.
using Reader = bool (*)(const Item& item, Machine& machine);

std::optional<int> integer(const Item& item, int least, int most = std::numeric_limits<int>::max()) {
  const auto* whole = std::get_if<std::int64_t>(&item.content);
  if (whole == nullptr || *whole < least || *whole > most) return std::nullopt;
  return static_cast<int>(*whole);
}

bool read_integer(const Item& item, int least, int most, int& into) {
  const auto number = integer(item, least, most);
  into = number.value_or(into);
  return number.has_value();
}

// One line of printable text; what has a minus first would be an option to a program.
bool read_text(const Item& item, std::string& into) {
  const std::string* text = item.text();
  if (text == nullptr || text->empty() || text->front() == '-') return false;
  if (std::any_of(text->begin(), text->end(), [](unsigned char c) { return c < ' ' || c == 127; }))
    return false;
  into = *text;
  return true;
}

bool read_choice(const Item& item, std::initializer_list<const char*> choices, std::string& into) {
  const std::string* text = item.text();
  if (text == nullptr || std::find(choices.begin(), choices.end(), *text) == choices.end()) return false;
  into = *text;
  return true;
}

bool read_devices(const Item& item, Machine& machine) {
  machine.devices = integer(item, 1);
  return machine.devices || (item.text() != nullptr && *item.text() == "auto");
}

bool read_exclusive(const Item& item, Machine& machine) {
  std::string choice;
  if (!read_choice(item, {"host", "devices"}, choice)) return false;
  machine.exclusive_host = choice == "host";
  return true;
}

bool read_timeout(const Item& item, Machine& machine) {
  const auto* whole = std::get_if<std::int64_t>(&item.content);
  const auto* number = std::get_if<double>(&item.content);
  const double seconds = whole ? static_cast<double>(*whole) : number ? *number : -1;
  if (seconds < 0 || !std::isfinite(seconds)) return false;
  machine.progress_timeout_seconds = seconds;
  return true;
}

bool read_time_limit(const Item& item, Machine& machine) {
  static const std::regex form(R"((\d{1,4}-)?\d{1,6}(:\d\d){0,2})");
  return read_text(item, machine.time_limit) && std::regex_match(machine.time_limit, form);
}

bool read_options(const Item& item, Machine& machine) {
  if (item.list() == nullptr) return false;
  for (const Item& each : *item.list()) {
    const std::string* text = path_or_argument(each);
    if (text == nullptr) return false;
    machine.options.push_back(*text);
  }
  return true;
}

Reader reader_of(const std::string& name) {
  static const std::map<std::string, Reader> readers{
      {"launcher",
       [](const Item& item, Machine& to) {
         return read_choice(item, {"local", "slurm", "mpi"}, to.launcher);
       }},
      {"accelerator",
       [](const Item& item, Machine& to) {
         return read_choice(item, {"auto", "cpu", "cuda"}, to.accelerator);
       }},
      {"devices", read_devices},
      {"exclusive", read_exclusive},
      {"communicator",
       [](const Item& item, Machine& to) {
         return read_choice(item, {"auto", "gloo", "nccl"}, to.communicator);
       }},
      {"progress_timeout", read_timeout},
      {"spool", [](const Item& item, Machine& to) { return read_text(item, to.spool); }},
      {"allocation",
       [](const Item& item, Machine& to) {
         return read_choice(item, {"job", "shared"}, to.allocation);
       }},
      {"jobs", [](const Item& item, Machine& to) { return read_integer(item, 1, 1'000'000, to.jobs); }},
      {"partition", [](const Item& item, Machine& to) { return read_text(item, to.partition); }},
      {"account", [](const Item& item, Machine& to) { return read_text(item, to.account); }},
      {"qos", [](const Item& item, Machine& to) { return read_text(item, to.qos); }},
      {"time_limit", read_time_limit},
      {"signal_before",
       [](const Item& item, Machine& to) { return read_integer(item, 0, 65535, to.signal_before_seconds); }},
      {"nodes", [](const Item& item, Machine& to) { return (to.nodes = integer(item, 1)).has_value(); }},
      {"cpus_per_task",
       [](const Item& item, Machine& to) { return read_integer(item, 1, 1 << 20, to.cpus_per_task); }},
      {"gpus_per_task",
       [](const Item& item, Machine& to) { return (to.gpus_per_task = integer(item, 1)).has_value(); }},
      {"hosts", [](const Item& item, Machine& to) { return read_text(item, to.hosts); }},
      {"options", read_options}};
  const auto found = readers.find(name);
  return found == readers.end() ? nullptr : found->second;
}

const MachineKey* machine_key(const std::string& name) {
  for (const MachineKey& key : machine_keys())
    if (key.name == name) return &key;
  return nullptr;
}

// The launchers of a key in quotation marks: "\"slurm\" or \"mpi\"".
std::string launchers_text(const MachineKey& key) {
  std::string text = "\"" + key.launchers + "\"";
  const auto space = text.find(' ');
  return space == std::string::npos ? text : text.replace(space, 1, "\" or \"");
}

// What trainyard says itself; Slurm also takes beginnings of names.
bool reserved(const std::string& option, const std::string& launcher) {
  static constexpr std::array<const char*, 13> of_sbatch{
      "--job-name", "--output", "--error",  "--chdir", "--wrap",   "--array", "--parsable",
      "--requeue",  "--export", "--signal", "--wait",  "--ntasks", "--input"};
  static constexpr std::array<const char*, 8> of_mpirun{"-n",     "-np",   "--n",        "--np",
                                                        "--host", "-host", "--hostfile", "-hostfile"};
  const std::string name = option.substr(0, option.find('='));
  if (launcher == "mpi") return std::find(of_mpirun.begin(), of_mpirun.end(), name) != of_mpirun.end();
  return std::any_of(of_sbatch.begin(), of_sbatch.end(),
                     [&](const char* own) { return std::string(own).starts_with(name); });
}

void check_options(const Item& list, const Machine& machine, Problems& problems) {
  if (list.list() == nullptr) return;
  for (const Item& item : *list.list()) {
    if (item.text() == nullptr) continue;
    if (machine.launcher == "slurm" && (item.text()->size() < 3 || !item.text()->starts_with("--")))
      problems.error(item.at,
                     "an option of sbatch must be \"--name\" or \"--name=value\", is " + description(item));
    else if (reserved(*item.text(), machine.launcher))
      problems.error(item.at, description(item) + " is trainyard's own to set; leave it out of options");
  }
}

// Keys that mean nothing under the launcher that was chosen.
void check_together(const Item::Table& table, const Machine& machine, Problems& problems) {
  for (const Member& member : table) {
    const MachineKey* key = machine_key(member.name);
    if (key == nullptr) continue;
    if (!key->launchers.empty() && key->launchers.find(machine.launcher) == std::string::npos)
      problems.error(member.at, member.name + " is for launcher = " + launchers_text(*key) +
                                    ", and the launcher here is \"" + machine.launcher + "\"");
    else if (member.name == "options")
      check_options(member.value, machine, problems);
    if (member.name == "exclusive" && machine.launcher == "mpi" && !machine.exclusive_host)
      problems.error(member.value.at,
                     "exclusive must be \"host\" under launcher = \"mpi\": mpirun does not share "
                     "hosts between runs");
    if (machine.accelerator == "cpu" && member.name == "gpus_per_task")
      problems.error(member.at, "gpus_per_task asks for GPUs, and accelerator is \"cpu\"");
    if (machine.accelerator == "cpu" && member.name == "communicator" && machine.communicator == "nccl")
      problems.error(member.value.at, "communicator \"nccl\" is for GPUs, and accelerator is \"cpu\"");
  }
}

}  // namespace

Machine read_machine(const Member& section, Problems& problems) {
  Machine machine;
  const Item::Table* table = section_table(section, "[machine]", problems);
  if (table == nullptr) return machine;
  std::vector<std::string> names;
  for (const MachineKey& key : machine_keys()) names.push_back(key.name);
  for (const Member& member : *table) {
    const Reader reader = reader_of(member.name);
    if (reader == nullptr)
      report_unknown(member, "[machine]", names, problems);
    else if (!reader(member.value, machine))
      problems.error(member.value.at, member.name + " must be " + machine_key(member.name)->allowed +
                                          ", is " + description(member.value));
  }
  check_together(*table, machine, problems);
  return machine;
}

std::map<std::string, std::string> read_data(const Member& section, Problems& problems) {
  std::map<std::string, std::string> data;
  const Item::Table* table = section_table(section, "[data]", problems);
  if (table == nullptr) return data;
  const std::vector<std::string> names = models::dataset_names();
  for (const Member& member : *table) {
    const std::string* text = path_or_argument(member.value);
    if (std::find(names.begin(), names.end(), member.name) == names.end()) {
      problems.error(member.at, "there is no data set " + in_quotes(member.name) +
                                    models::name_advice(member.name, names));
    } else if (text == nullptr) {
      problems.error(member.value.at,
                     member.name + " must be a folder or \"synthetic\", is " + description(member.value));
    } else if (*text != "synthetic" && models::find_dataset(member.name).generated()) {
      problems.error(member.value.at, member.name + " is generated and has no folder; leave this line out");
    } else {
      data[member.name] = *text;
    }
  }
  return data;
}

}  // namespace trainyard::experiments
