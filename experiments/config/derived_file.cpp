#include "experiments/config/derived_file.h"

#include <sstream>

#include <fmt/format.h>
#include <toml++/toml.h>

#include "base/error.h"
#include "base/named_row.h"

namespace trainyard::experiments {

namespace {

template <typename T>
void put_value(toml::table& table, const std::string& name, const T& value) {
  table.insert_or_assign(name, value);
}
template <typename T>
void put_value(toml::table& table, const std::string& name, const std::vector<T>& values) {
  toml::array list;
  for (const T& value : values) list.push_back(value);
  table.insert_or_assign(name, list);
}

void put(toml::table& table, const std::string& name, const Value& value) {
  std::visit([&](const auto& known) { put_value(table, name, known); }, value);
}

toml::table& table_in(toml::table& file, const char* name) {
  if (!file[name].is_table()) file.insert_or_assign(name, toml::table{});
  return *file[name].as_table();
}

void refuse_axes(const toml::table& matrix, const std::vector<Rung>& rungs) {
  for (const Rung& rung : rungs)
    for (const auto& [name, value] : rung.settings)
      if (matrix.contains(name) || matrix.contains("zip"))
        throw UserError(fmt::format("the matrix varies {}, and the ladder changes {}",
                                    matrix.contains(name) ? name : "values of a zip", name),
                        "write a file without this axis, run it, and explain that experiment");
}

std::string text_of(const toml::table& file) {
  std::ostringstream text;
  using Style = toml::format_flags;
  text << toml::toml_formatter(file, toml::toml_formatter::default_flags &
                                         ~(Style::allow_literal_strings | Style::indentation))
       << "\n";
  return text.str();
}

// The parts of an experiment that a derived one keeps.
toml::table kept(const std::string& toml) {
  toml::table file = toml::parse(toml);
  for (const char* other : {"compare", "include", "exclude", "expect", "published"}) file.erase(other);
  return file;
}

}  // namespace

std::string ladder_file(const std::string& toml, const Ladder& ladder, const LadderFile& made) {
  std::vector<Rung> rungs = ladder.rungs;
  for (const std::vector<Rung>* more : {&ladder.remedies, &ladder.of_times})
    rungs.insert(rungs.end(), more->begin(), more->end());
  toml::table file = kept(toml);
  toml::table& matrix = table_in(file, "matrix");
  refuse_axes(matrix, rungs);
  toml::table& strategies = table_in(file, "strategy");
  toml::table own;  // of the baseline
  if (const toml::table* given = strategies[ladder.baseline].as_table()) own = *given;
  if (!own.contains("kind")) own.insert("kind", ladder.baseline);
  toml::array names{ladder.baseline, ladder.arm};
  toml::array differs{"batch", "learning_rate", "warmup_steps"};
  for (const Rung& rung : rungs) {
    toml::table strategy = own;
    for (const auto& [name, value] : rung.settings) put(strategy, name, value);
    strategies.insert_or_assign(rung.name, strategy);
    names.push_back(rung.name);
  }
  matrix.insert_or_assign("model", toml::array{made.model});
  matrix.insert_or_assign("strategy", names);
  matrix.insert_or_assign("seed", toml::table{{"count", made.seeds}});
  file.insert_or_assign("name", made.name);
  file.insert("compare",
              toml::table{{"axis", "strategy"}, {"baseline", ladder.baseline}, {"differs", differs}});
  return "# Written by `trainyard explain --ladder`: each strategy makes one more change than the one before "
         "it.\n" +
         text_of(file);
}

std::string probe_file(const std::string& toml, const Probe& probe) {
  toml::table file = kept(toml);
  toml::table& matrix = table_in(file, "matrix");
  if (matrix.contains("zip")) throw UserError("the probe cannot choose a run from a matrix with a zip");
  std::vector<std::string> names;
  for (const auto& [name, values] : matrix) names.emplace_back(name.str());
  for (const std::string& name : names) {
    toml::table one;
    if (const Value* value = value_or_null(probe.axes, name)) put(one, name, *value);
    if (toml::node* node = one.get(name)) matrix.insert_or_assign(name, toml::array{*node});
  }
  matrix.insert_or_assign("strategy", toml::array{probe.baseline, probe.arm});
  toml::table& strategies = table_in(file, "strategy");
  for (const std::string& name : {probe.baseline, probe.arm}) {
    toml::table& variables = table_in(table_in(strategies, name.c_str()), "env");
    variables.insert_or_assign("RECORDER_PROBE", probe.folder);
    if (name == probe.baseline)
      variables.insert_or_assign("RECORDER_PROBE_SAMPLES", fmt::format("{:.0f}", probe.samples));
  }
  constexpr int seconds = 600;
  toml::table& machine = table_in(file, "machine");
  machine.insert_or_assign("progress_timeout", seconds);
  machine.insert_or_assign("exclusive", "devices");  // nothing is timed
  return text_of(file);
}

}  // namespace trainyard::experiments
