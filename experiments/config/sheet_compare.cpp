// [compare] or [[compare]]: what is compared, with what, and by which margins.
#include <algorithm>

#include "base/nearest_name.h"
#include "experiments/config/sheet.h"
#include "experiments/config/vocabulary.h"
#include "experiments/design/contract.h"

namespace trainyard::experiments {

namespace {

using models::Bound;

models::Parameter number(const char* name, Bound minimum, std::optional<Bound> maximum = {}) {
  models::Parameter parameter;
  parameter.name = name;
  parameter.type = models::ValueType::number;
  parameter.minimum = minimum;
  parameter.maximum = maximum;
  return parameter;
}

void read_number(const models::Parameter& parameter, const Item& item, double& target, Problems& problems) {
  if (const auto value = checked_value(parameter, item, problems)) target = std::get<double>(*value);
}

void read_flag(const Member& member, bool& target, Problems& problems) {
  models::Parameter parameter;
  parameter.name = member.name;
  parameter.type = models::ValueType::boolean;
  if (const auto value = checked_value(parameter, member.value, problems)) target = std::get<bool>(*value);
}

// The name of something that every run has a value of, or one of `further`.
std::optional<std::string> value_name(const Item& item, const std::string& what, const Declared& declared,
                                      Problems& problems, const std::vector<std::string>& further = {}) {
  std::vector<std::string> known = all_value_names(declared);
  known.insert(known.end(), further.begin(), further.end());
  const std::string* name = item.text();
  if (name != nullptr && std::find(known.begin(), known.end(), *name) != known.end()) return *name;
  problems.error(item.at, what + " must be the name of an axis or a key, is " + description(item) +
                              (name == nullptr ? "" : models::name_advice(*name, known)));
  return std::nullopt;
}

void read_names(const Member& member, std::vector<std::string>& names, const Declared& declared,
                Problems& problems, const std::vector<std::string>& further = {}) {
  const Item::List* list = member.value.list();
  names.clear();
  if (list == nullptr) {
    problems.error(member.value.at, member.name + " must be a list of names of axes, as in [\"seed\"], is " +
                                        description(member.value));
    return;
  }
  for (const Item& item : *list) {
    const auto name = value_name(item, member.name, declared, problems, further);
    if (name && std::find(names.begin(), names.end(), *name) != names.end())
      problems.error(item.at, member.name + " has " + in_quotes(*name) + " twice");
    if (name) names.push_back(*name);
  }
}

void read_loss_margin(const Member& member, LossMargin& margin, Problems& problems) {
  const Item::Table* table = section_table(member, "margins.loss", problems);
  if (table == nullptr) return;
  for (const Member& part : *table) {
    if (part.name == "ratio") {
      read_number(number("ratio", {1, false}), part.value, margin.ratio, problems);
    } else if (part.name == "absolute") {
      read_number(number("absolute", {0, true}), part.value, margin.absolute, problems);
    } else {
      report_unknown(part, "margins.loss", {"ratio", "absolute"}, problems);
    }
  }
}

void read_margins(const Member& member, Margins& margins, Problems& problems) {
  const Item::Table* table = section_table(member, "margins", problems);
  if (table == nullptr) return;
  for (const Member& part : *table) {
    if (part.name == "time") {
      read_number(number("time", {1, false}), part.value, margins.time, problems);
    } else if (part.name == "loss") {
      read_loss_margin(part, margins.loss, problems);
    } else if (part.name == "accuracy_points") {
      read_number(number("accuracy_points", {0, false}, Bound{100}), part.value, margins.accuracy_points,
                  problems);
    } else {
      report_unknown(part, "margins", {"time", "loss", "accuracy_points"}, problems);
    }
  }
}

void read_axis_name(const Member& member, Compare& compare, const Declared& declared, Problems& problems) {
  const auto name = value_name(member.value, "axis", declared, problems);
  compare.axis = name.value_or("");  // without one nothing more is checked
}

void read_baseline(const Member& member, CompareTable& table, Problems& problems) {
  table.baseline_at = member.value.at;
  table.baseline = as_value(member.value);
  if (!table.baseline)
    problems.error(member.value.at, "baseline must be a value of the axis, is " + description(member.value));
}

void read_member(const Member& member, CompareTable& table, const Declared& declared, Problems& problems) {
  static const std::vector<std::string> known{"axis",  "baseline", "pair",   "margins",
                                              "alpha", "final",    "differs"};
  if (member.name == "axis") return read_axis_name(member, table.compare, declared, problems);
  if (member.name == "baseline") return read_baseline(member, table, problems);
  if (member.name == "pair") return read_names(member, table.compare.pair, declared, problems);
  if (member.name == "margins") return read_margins(member, table.compare.margins, problems);
  if (member.name == "differs")
    return read_names(member, table.compare.differs, declared, problems, contract_names());
  if (member.name == "final") return read_flag(member, table.compare.final_look, problems);
  if (member.name == "alpha")
    return read_number(number("alpha", {0, false}, Bound{0.5}), member.value, table.compare.alpha, problems);
  report_unknown(member, "[compare]", known, problems);
}

std::optional<CompareTable> read_table(const Item& item, const Declared& declared, Problems& problems) {
  if (item.table() == nullptr) {
    problems.error(item.at, "compare must be a table, is " + description(item));
    return std::nullopt;
  }
  CompareTable table;
  table.at = table.baseline_at = item.at;
  for (const Member& member : *item.table()) read_member(member, table, declared, problems);
  const auto& pair = table.compare.pair;
  if (std::find(pair.begin(), pair.end(), table.compare.axis) != pair.end())
    problems.error(item.at, "pair has " + in_quotes(table.compare.axis) + ", the axis that is compared");
  return table;
}

}  // namespace

std::vector<CompareTable> read_compare(const Member& section, const Declared& declared, Problems& problems) {
  std::vector<CompareTable> tables;
  const auto add = [&](const Item& item) {
    if (auto table = read_table(item, declared, problems)) tables.push_back(std::move(*table));
  };
  if (const Item::List* list = section.value.list()) {
    for (const Item& item : *list) add(item);
  } else {
    add(section.value);
  }
  return tables;
}

}  // namespace trainyard::experiments
