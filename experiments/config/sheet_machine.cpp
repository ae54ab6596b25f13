// [machine] and [data]: where an experiment runs, and where its data lies.
#include <algorithm>
#include <array>

#include "base/nearest_name.h"
#include "experiments/config/machine_keys.h"
#include "experiments/config/sheet.h"
#include "experiments/config/vocabulary.h"
#include "models/datasets/datasets.h"

namespace trainyard::experiments {

namespace {

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
    const MachineKey* key = machine_key(member.name);
    if (key == nullptr)
      report_unknown(member, "[machine]", names, problems);
    else if (!key->read(member.value, machine))
      problems.error(member.value.at,
                     member.name + " must be " + key->allowed + ", is " + description(member.value));
  }
  check_together(*table, machine, problems);
  return machine;
}

std::map<std::string, std::string> read_data(const Member& section, const Declared& declared,
                                             Problems& problems) {
  std::map<std::string, std::string> data;
  const Item::Table* table = section_table(section, "[data]", problems);
  if (table == nullptr) return data;
  const std::vector<std::string> names = models::dataset_names();
  for (const Member& member : *table) {
    const std::string* text = path_or_argument(member.value);
    if (declared_dataset(member.name, declared) != nullptr) {
      problems.error(member.at, in_quotes(member.name) +
                                    " is a data set of your own, which the program reads itself; leave this "
                                    "line out");
    } else if (std::find(names.begin(), names.end(), member.name) == names.end()) {
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
