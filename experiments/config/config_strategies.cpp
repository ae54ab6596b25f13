#include "experiments/config/config_strategies.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/named_row.h"
#include "base/plain_file.h"
#include "base/sha256.h"
#include "experiments/config/config.h"
#include "experiments/config/found_files.h"
#include "experiments/config/key_lookup.h"

namespace trainyard::experiments {

namespace fs = std::filesystem;

namespace {

// The kind of the table `member`. If it has none, reports that and returns an empty text.
std::string kind_of(const TomlMember& member, const TomlNode::Table& table, Diagnostics& problems) {
  const auto* line = row_or_null(table, &TomlMember::name, "kind");
  const Parameter kinds = choice("kind", strategy_names());
  std::string kind;  // empty if it is missing or wrong
  if (line != nullptr) read_value(kinds, line->value, kind, problems);
  const bool is_kind = strategy_or_null(member.name) != nullptr;
  if (is_kind && !kind.empty() && kind != member.name)
    problems.error(member.at,
                   "strategy {} has the name of a kind; give a strategy of another kind another name",
                   in_quotes(member.name));
  if (is_kind) return member.name;
  if (line != nullptr) return kind;
  const std::string near = nearest_name(member.name, strategy_names());
  problems.error(member.at, "there is no strategy {} (a name of your own needs a command or a kind: {}){}",
                 in_quotes(member.name), allowed_text(kinds),
                 near.empty() ? "" : "; did you mean " + in_quotes(near) + "?");
  return "";
}

// The kind of a table with a command. The label must not be a kind, and the table must not set one.
std::string foreign_kind_of(const TomlMember& member, const TomlNode::Table& table, Diagnostics& problems) {
  if (strategy_or_null(member.name) != nullptr) {
    problems.error(member.at,
                   "strategy {} is one of trainyard's; give a strategy with a command another name",
                   in_quotes(member.name));
    return "";
  }
  if (const auto* kind = row_or_null(table, &TomlMember::name, "kind"))
    problems.error(kind->at, "a strategy with a command has no kind; remove this line");
  return foreign_kind().name;
}

// A list of texts without zero bytes, for arguments and file names. Empty if it is not one.
std::vector<std::string> texts_of(const TomlMember& member, const std::string& where, Diagnostics& problems) {
  const TomlNode::List* list = member.value.list();
  const auto is_text = [](const TomlNode& item) {
    return item.text() != nullptr && item.text()->find('\0') == std::string::npos;
  };
  std::vector<std::string> texts;
  if (list == nullptr || list->empty() || !std::ranges::all_of(*list, is_text))
    report_wrong(member.name + " of " + where, R"(a list of texts, as in ["python3", "train.py"])",
                 member.value, problems);
  else
    for (const TomlNode& item : *list) texts.push_back(*item.text());
  return texts;
}

// Whether trainyard sets this variable for each rank, see docs/record-protocol.md.
bool is_of_the_launch(const std::string& name) {
  static constexpr std::array names{
      "RANK",        "LOCAL_RANK",  "WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_RANK",          "ROLE_RANK",
      "MASTER_ADDR", "MASTER_PORT", "NODE_RANK",  "OMP_NUM_THREADS",  "CUDA_VISIBLE_DEVICES"};
  return std::ranges::find(names, name) != names.end() || name.starts_with("TRAINYARD_") ||
         name.starts_with("TORCHELASTIC_");
}

void read_variable(const TomlMember& member, const std::string& where, ForeignTable& foreign,
                   Diagnostics& problems) {
  const std::string* text = member.value.text();
  if (!is_identifier(member.name))
    problems.error(
        member.at,
        "env of {} has {}, but the name of a variable may have only letters, digits and underscores", where,
        in_quotes(member.name));
  else if (is_of_the_launch(member.name))
    problems.error(member.at, member.name + " is set by trainyard for each rank; remove it from env");
  else if (text == nullptr || text->find('\0') != std::string::npos)
    report_wrong(member.name + " of env", "a text, as in { NAME = \"value\" }", member.value, problems);
  else
    foreign.environment[member.name] = *text;
}

// Reads and checks `command`, `files` and `env` of the table `where`. Empty if there is no command.
std::optional<ForeignTable> read_foreign(const TomlNode::Table& table, const std::string& where,
                                         Diagnostics& problems) {
  const auto* command = row_or_null(table, &TomlMember::name, "command");
  const auto* files = row_or_null(table, &TomlMember::name, "files");
  const auto* environment = row_or_null(table, &TomlMember::name, "env");
  for (const TomlMember* each : {files, environment})
    if (each != nullptr && command == nullptr)
      problems.error(each->at, "{} of {} needs a command", each->name, where);
  if (command == nullptr) return std::nullopt;
  ForeignTable foreign{texts_of(*command, where, problems), {}, {}, command->at, {}};
  if (environment != nullptr)
    for (const TomlMember& variable : members_of(*environment, "env of " + where, problems))
      read_variable(variable, where, foreign, problems);
  if (files != nullptr) {
    foreign.files = texts_of(*files, where, problems);
    foreign.files_at = files->value.at;
  }
  return foreign;
}

void read_strategy(const TomlMember& member, ExperimentConfig& config, Diagnostics& problems) {
  const std::string where = "[strategy." + member.name + "]";
  const TomlNode::Table* table = section_table(member, where, problems);
  if (table == nullptr) return;
  if (!is_experiment_name(member.name)) {
    problems.error(member.at, std::string("a strategy's name must be ") + name_rule);
    return;
  }
  const auto foreign = read_foreign(*table, where, problems);
  const std::string kind =
      foreign ? foreign_kind_of(member, *table, problems) : kind_of(member, *table, problems);
  if (!kind.empty()) config.own_kinds[member.name] = kind;
  if (foreign) config.foreign[member.name] = *foreign;
  std::vector<std::string> known = run_key_names(true);
  const std::vector<std::string> of_tables{"kind", "command", "files", "env"};
  known.insert(known.end(), of_tables.begin(), of_tables.end());
  TomlNode::Table settings;
  std::copy_if(table->begin(), table->end(), std::back_inserter(settings),
               [&](const TomlMember& each) { return !contains(of_tables, each.name); });
  read_settings(settings, where, known, config.strategies[member.name], config.declared, problems);
}

// Whether the value is a known label. Reports it if not.
bool known_strategy(const ExperimentConfig& config, const Setting& setting, Diagnostics& problems) {
  const auto& label = std::get<std::string>(setting.value);
  if (strategy_kind(config, label) != nullptr) return true;
  // A wrong table was already reported.
  if (!config.strategies.contains(label))
    problems.error(setting.at, "there is no strategy {}{}", in_quotes(label),
                   name_advice(label, strategy_labels(config)));
  return false;
}

void check_matrix(ExperimentConfig& config, Diagnostics& problems) {
  for (Dimension& dimension : config.matrix.dimensions)
    for (std::size_t i = 0; i < dimension.size(); ++i) {
      if (dimension[i].name != "strategy") continue;
      std::vector<bool> known;
      for (const Setting& setting : dimension[i].values)
        known.push_back(known_strategy(config, setting, problems));
      if (std::ranges::find(known, false) == known.end()) continue;
      config.matrix.broken = true;
      for (Axis& axis : dimension) {
        std::size_t place = 0;
        std::erase_if(axis.values, [&](const Setting&) { return !known[place++]; });
      }
    }
  std::erase_if(config.matrix.dimensions, [](const Dimension& each) { return each.front().values.empty(); });
}

void check_rows(const ExperimentConfig& config, std::vector<Row>& rows, Diagnostics& problems) {
  std::erase_if(rows, [&](const Row& row) {
    const auto strategy = row.settings.find("strategy");
    return strategy != row.settings.end() && !known_strategy(config, strategy->second, problems);
  });
}

struct Filled {
  std::string text;
  std::string unknown;  // the first unknown name
  bool open = false;    // true if a brace is not closed
};

Filled filled(const std::string& argument, const std::map<std::string, Value>& values) {
  Filled result;
  for (std::size_t i = 0; i < argument.size(); ++i) {
    const bool doubled = i + 1 < argument.size() && argument[i + 1] == argument[i];
    if (argument[i] != '{' || doubled) {
      if (doubled && (argument[i] == '{' || argument[i] == '}')) ++i;
      result.text += argument[i];
      continue;
    }
    const auto end = argument.find('}', i);
    result.open = end == std::string::npos;
    if (result.open) return result;
    const std::string name = argument.substr(i + 1, end - i - 1);
    const auto value = values.find(name);
    if (value != values.end())
      result.text += plain_text(value->second);
    else if (result.unknown.empty())
      result.unknown = name;
    i = end;
  }
  return result;
}

std::string hash_of(const fs::path& file, const std::string& entry, const Location& at) {
  require_stored(file, entry, at);
  PlainFileReader in(file);
  if (!in)
    throw UserError("the file " + file.string() + " of a strategy cannot be read: " + in.problem(),
                    "paths in `files` are relative to the folder of the experiment file", at);
  return sha256_hex(in);
}

// The files of one entry of `files`: the file itself, or the matches of the pattern or folder.
std::vector<ForeignFile> files_of(const std::string& entry, const fs::path& folder, const Location& at) {
  if (!finds_files(entry, folder))
    return {{entry, hash_of(folder / entry, entry, at), false, folder / entry}};
  std::vector<ForeignFile> files;
  for (const FoundFile& found : found_files(entry, folder, at))
    files.push_back({found.name, hash_of(found.place, entry, at), true, found.place});
  if (files.empty())
    throw UserError(
        fmt::format("`files` has {}, which matches no file in {}", in_quotes(entry), folder.string()),
        "correct the name or pattern; hidden files and __pycache__ are ignored", at);
  return files;
}

// The file that an argument names: "train.py", "--config=small.json". Empty if it names none.
std::string named_file(const std::string& argument, const fs::path& folder) {
  std::error_code none;
  for (const std::string& name : {argument, argument.substr(argument.find('=') + 1)})
    if (fs::is_regular_file(folder / name, none)) return name;
  return "";
}

// Files that the command names and `files` lacks. A program without a slash, or by its absolute path, is one
// of the system.
std::vector<std::string> unlisted_in(const Strategy& strategy) {
  const std::string& program = strategy.command.front();
  const bool of_the_system = program.find('/') == std::string::npos || fs::path(program).is_absolute();
  std::vector<std::string> unlisted;
  for (std::size_t i = of_the_system ? 1 : 0; i < strategy.command.size(); ++i) {
    const std::string name = named_file(strategy.command[i], strategy.folder);
    std::error_code none;
    const bool listed = std::ranges::any_of(strategy.files, [&](const ForeignFile& file) {
      return fs::equivalent(file.place, fs::path(strategy.folder) / name, none);
    });
    if (!name.empty() && !listed) unlisted.push_back(name);
  }
  return unlisted;
}

}  // namespace

const StrategyKind* strategy_kind(const ExperimentConfig& config, const std::string& label) {
  const auto own = config.own_kinds.find(label);
  if (own != config.own_kinds.end() && own->second == foreign_kind().name) return &foreign_kind();
  return strategy_or_null(own == config.own_kinds.end() ? label : own->second);
}

std::vector<std::string> strategy_labels(const ExperimentConfig& config) {
  std::vector<std::string> labels = strategy_names();
  for (const auto& [label, kind] : config.own_kinds)
    if (strategy_or_null(label) == nullptr) labels.push_back(label);
  return labels;
}

void check_strategies(ExperimentConfig& config, Diagnostics& problems) {
  check_matrix(config, problems);
  check_rows(config, config.exclude, problems);
  check_rows(config, config.include, problems);
}

void read_strategies(const TomlMember& section, ExperimentConfig& config, Diagnostics& problems) {
  for (const TomlMember& member : members_of(section, "[strategy.*]", problems))
    read_strategy(member, config, problems);
}

void fill_command(const ForeignTable& foreign, Run& run, Diagnostics& problems) {
  const auto values = values_by_name(run);
  const auto fill = [&](const std::string& text) {
    const Filled result = filled(text, values);
    if (result.open)
      problems.error(foreign.at,
                     in_quotes(text) + " has a { that is not closed; write {{ for a literal brace");
    if (!result.unknown.empty()) {
      std::vector<std::string> names;
      names.reserve(values.size());
      for (const auto& each : values) names.push_back(each.first);
      problems.error(foreign.at, "a run has no value named {}{}", in_quotes(result.unknown),
                     key_advice(result.unknown, names));
    }
    return result.text;
  };
  run.strategy.command.clear();
  for (const std::string& argument : foreign.command) run.strategy.command.push_back(fill(argument));
  for (const auto& [name, text] : foreign.environment) run.strategy.environment[name] = fill(text);
  for (const std::string& file : foreign.files) run.strategy.files.push_back({file, "", false});
}

void resolve_files(Experiment& experiment) {
  const fs::path folder = fs::absolute(experiment.file).parent_path();
  std::map<std::string, std::vector<ForeignFile>> entries;  // each entry of `files` is read once
  for (Run& run : experiment.runs) {
    if (!run.strategy.foreign()) continue;
    run.strategy.folder = folder.string();
    const Location& at = experiment.files_locations.at(run.strategy.name);
    std::vector<ForeignFile> files;
    for (const ForeignFile& entry : run.strategy.files) {
      auto [place, is_new] = entries.try_emplace(entry.name);
      if (is_new) place->second = files_of(entry.name, folder, at);
      files.insert(files.end(), place->second.begin(), place->second.end());
    }
    run.strategy.files = std::move(files);
  }
}

std::vector<std::string> unlisted_files(const Experiment& experiment) {
  constexpr const char* effect = "a change of the program would not make new runs";
  std::vector<std::string> warnings;
  const auto warn = [&](std::string text) {
    if (std::ranges::find(warnings, text) == warnings.end()) warnings.push_back(std::move(text));
  };
  for (const Run& run : experiment.runs) {
    if (!run.strategy.foreign()) continue;
    const std::vector<std::string> unlisted = unlisted_in(run.strategy);
    if (run.strategy.files.empty())
      warn(fmt::format("strategy {} has no `files`, so {}; list the files of the program{}",
                       in_quotes(run.strategy.name), effect,
                       unlisted.empty() ? "" : ", such as " + in_quotes(unlisted.front())));
    else
      for (const std::string& name : unlisted)
        warn(fmt::format("`files` of strategy {} lacks {}, which its command names, so {}; add it",
                         in_quotes(run.strategy.name), in_quotes(name), effect));
  }
  return warnings;
}

}  // namespace trainyard::experiments
