// [machine] and [data]: where an experiment runs, and where its data lies.
#include <algorithm>
#include <cmath>
#include <limits>

#include "experiments/sheet.h"
#include "experiments/vocabulary.h"
#include "models/datasets.h"
#include "models/nearest_name.h"

namespace trainyard::experiments {

namespace {

void read_timeout(const Item& item, Machine& machine, Problems& problems) {
  const auto* whole = std::get_if<std::int64_t>(&item.content);
  const auto* number = std::get_if<double>(&item.content);
  const double seconds = whole ? static_cast<double>(*whole) : number ? *number : -1;
  if (seconds >= 0 && std::isfinite(seconds))
    machine.progress_timeout_seconds = seconds;
  else
    problems.error(item.at,
                   "progress_timeout must be a number of seconds >= 0 (0: none), is " + description(item));
}

}  // namespace

Machine read_machine(const Member& section, Problems& problems) {
  Machine machine;
  const Item::Table* table = section_table(section, "[machine]", problems);
  if (table == nullptr) return machine;
  for (const Member& member : *table) {
    const Item& item = member.value;
    const auto* devices = std::get_if<std::int64_t>(&item.content);
    if (member.name == "devices" && devices && *devices >= 1 && *devices <= std::numeric_limits<int>::max()) {
      machine.devices = static_cast<int>(*devices);
    } else if (member.name == "devices" && (item.text() == nullptr || *item.text() != "auto")) {
      problems.error(item.at, "devices must be an integer >= 1 or \"auto\", is " + description(item));
    } else if (member.name == "exclusive" &&
               (item.text() == nullptr || (*item.text() != "host" && *item.text() != "devices"))) {
      problems.error(item.at, "exclusive must be one of \"host\", \"devices\", is " + description(item));
    } else if (member.name == "exclusive") {
      machine.exclusive_host = *item.text() == "host";
    } else if (member.name == "progress_timeout") {
      read_timeout(item, machine, problems);
    } else if (member.name != "devices") {
      report_unknown(member, "[machine]", {"devices", "exclusive", "progress_timeout"}, problems);
    }
  }
  return machine;
}

std::map<std::string, std::string> read_data(const Member& section, Problems& problems) {
  std::map<std::string, std::string> data;
  const Item::Table* table = section_table(section, "[data]", problems);
  if (table == nullptr) return data;
  const std::vector<std::string> names = models::dataset_names();
  for (const Member& member : *table) {
    const std::string* text = member.value.text();
    if (std::find(names.begin(), names.end(), member.name) == names.end()) {
      problems.error(member.at, "there is no data set " + in_quotes(member.name) +
                                    models::name_advice(member.name, names));
    } else if (text == nullptr || text->empty()) {
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
