// [strategy.*]: strategies by label. A label is the name of a kind, or any other name with `kind = "…"`, so
// that one matrix can hold several strategies of a kind.
#include <algorithm>

#include "base/nearest_name.h"
#include "experiments/config/sheet.h"
#include "experiments/config/vocabulary.h"

namespace trainyard::experiments {

namespace {

const models::Parameter& kind_parameter() {
  static const models::Parameter parameter = [] {
    models::Parameter kind;
    kind.name = "kind";
    kind.type = models::ValueType::text;
    kind.choices = strategy_names();
    return kind;
  }();
  return parameter;
}

// The kind that a table says; empty where it says none or a wrong one, `said` tells which.
std::string read_kind(const Item::Table& table, bool& said, Problems& problems) {
  for (const Member& member : table) {
    if (member.name != "kind") continue;
    said = true;
    const auto value = checked_value(kind_parameter(), member.value, problems);
    return value ? std::get<std::string>(*value) : "";
  }
  return "";
}

// The kind of the table `member`; empty, and reported, where it has none.
std::string kind_of(const Member& member, const Item::Table& table, Problems& problems) {
  bool said = false;
  std::string kind = read_kind(table, said, problems);
  const bool is_kind = strategy_or_null(member.name) != nullptr;
  if (is_kind && said && !kind.empty() && kind != member.name)
    problems.error(member.at, "strategy " + in_quotes(member.name) +
                                  " is a kind itself; give a strategy of another kind another name");
  if (is_kind) return member.name;
  if (said) return kind;
  const std::string near = models::nearest_name(member.name, strategy_names());
  problems.error(member.at, "there is no strategy " + in_quotes(member.name) +
                                " (a name of your own needs a command, or a kind, " +
                                models::allowed_text(kind_parameter()) + ")" +
                                (near.empty() ? "" : "; did you mean " + in_quotes(near) + "?"));
  return "";
}

// A command makes the kind: the label is a name of its own, and no other kind is said.
std::string foreign_kind_of(const Member& member, const Item::Table& table, Problems& problems) {
  if (strategy_or_null(member.name) != nullptr) {
    problems.error(member.at, "strategy " + in_quotes(member.name) +
                                  " is a kind of trainyard's; give a command a name of its own");
    return "";
  }
  for (const Member& each : table)
    if (each.name == "kind")
      problems.error(each.at, "a strategy with a command has no kind; leave this line out");
  return foreign_kind().name;
}

void read_strategy(const Member& member, Sheet& sheet, Problems& problems) {
  const std::string where = "[strategy." + member.name + "]";
  const Item::Table* table = section_table(member, where, problems);
  if (table == nullptr) return;
  if (!is_experiment_name(member.name)) {
    problems.error(member.at, std::string("a strategy's name must be ") + name_rule);
    return;
  }
  const auto foreign = read_foreign(*table, where, problems);
  const std::string kind =
      foreign ? foreign_kind_of(member, *table, problems) : kind_of(member, *table, problems);
  if (!kind.empty()) sheet.own_kinds[member.name] = kind;
  if (foreign) sheet.foreign[member.name] = *foreign;
  std::vector<std::string> known = run_key_names(true);
  const std::vector<std::string> of_tables{"kind", "command", "files", "env"};
  known.insert(known.end(), of_tables.begin(), of_tables.end());
  Item::Table settings;
  std::copy_if(table->begin(), table->end(), std::back_inserter(settings), [&](const Member& each) {
    return std::find(of_tables.begin(), of_tables.end(), each.name) == of_tables.end();
  });
  read_settings(settings, where, known, sheet.strategies[member.name], sheet.declared, problems);
}

// Is the value a label of the sheet? Reports it where not.
bool known_strategy(const Sheet& sheet, const Setting& setting, Problems& problems) {
  const auto& label = std::get<std::string>(setting.value);
  if (strategy_kind(sheet, label) != nullptr) return true;
  // A table that is wrong has been reported.
  if (!sheet.strategies.contains(label))
    problems.error(setting.at, "there is no strategy " + in_quotes(label) +
                                   models::name_advice(label, strategy_labels(sheet)));
  return false;
}

void check_matrix(Sheet& sheet, Problems& problems) {
  for (Dimension& dimension : sheet.matrix.dimensions)
    for (std::size_t i = 0; i < dimension.size(); ++i) {
      if (dimension[i].name != "strategy") continue;
      std::vector<bool> known;
      for (const Setting& setting : dimension[i].values)
        known.push_back(known_strategy(sheet, setting, problems));
      if (std::find(known.begin(), known.end(), false) == known.end()) continue;
      sheet.matrix.broken = true;
      for (Axis& axis : dimension) {
        std::size_t place = 0;
        std::erase_if(axis.values, [&](const Setting&) { return !known[place++]; });
      }
    }
  std::erase_if(sheet.matrix.dimensions, [](const Dimension& each) { return each.front().values.empty(); });
}

void check_rows(const Sheet& sheet, std::vector<Row>& rows, Problems& problems) {
  std::erase_if(rows, [&](const Row& row) {
    const auto strategy = row.settings.find("strategy");
    return strategy != row.settings.end() && !known_strategy(sheet, strategy->second, problems);
  });
}

}  // namespace

const StrategyKind* strategy_kind(const Sheet& sheet, const std::string& label) {
  const auto own = sheet.own_kinds.find(label);
  if (own != sheet.own_kinds.end() && own->second == foreign_kind().name) return &foreign_kind();
  return strategy_or_null(own == sheet.own_kinds.end() ? label : own->second);
}

std::vector<std::string> strategy_labels(const Sheet& sheet) {
  std::vector<std::string> labels = strategy_names();
  for (const auto& [label, kind] : sheet.own_kinds)
    if (strategy_or_null(label) == nullptr) labels.push_back(label);
  return labels;
}

void check_strategies(Sheet& sheet, Problems& problems) {
  check_matrix(sheet, problems);
  check_rows(sheet, sheet.exclude, problems);
  check_rows(sheet, sheet.include, problems);
}

void read_strategies(const Member& section, Sheet& sheet, Problems& problems) {
  const Item::Table* members = section_table(section, "[strategy.*]", problems);
  if (members == nullptr) return;
  for (const Member& member : *members) read_strategy(member, sheet, problems);
}

}  // namespace trainyard::experiments
