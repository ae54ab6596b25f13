#include "experiments/foreign.h"

#include <array>
#include <fstream>
#include <map>

#include "experiments/vocabulary.h"
#include "models/nearest_name.h"
#include "models/sha256.h"

namespace trainyard::experiments {

namespace fs = std::filesystem;

namespace {

// A list of texts, none of them with a zero byte: those are arguments and names of files.
std::vector<std::string> texts_of(const Member& member, const std::string& where, Problems& problems) {
  std::vector<std::string> texts;
  const Item::List* list = member.value.list();
  bool sound = list != nullptr && !list->empty();
  if (list != nullptr)
    for (const Item& item : *list) {
      const std::string* text = item.text();
      if (text == nullptr || text->find('\0') != std::string::npos)
        sound = false;
      else
        texts.push_back(*text);
    }
  if (!sound)
    problems.error(member.value.at, member.name + " of " + where +
                                        " must be a list of texts, as in [\"python3\", \"train.py\"], is " +
                                        description(member.value));
  return sound ? texts : std::vector<std::string>{};
}

struct Filled {
  std::string text;
  std::string unknown;  // the first name that stands for nothing
  bool open = false;    // a brace that is not closed
};

Filled filled(const std::string& argument, const std::map<std::string, models::Value>& values) {
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

std::string hash_of(const fs::path& file, const Experiment& experiment) {
  std::ifstream in;
  if (fs::is_regular_file(file)) in.open(file, std::ios::binary);  // a pipe would be waited for
  if (!in.is_open())
    throw UserError("the file " + file.string() + " of a strategy cannot be read",
                    "`files` are looked for beside the experiment's file",
                    {.file = experiment.file.string()});
  models::Sha256 hash;
  std::array<char, 65536> buffer;
  while (in.read(buffer.data(), buffer.size()), in.gcount() > 0)
    hash.update(std::string_view(buffer.data(), static_cast<std::size_t>(in.gcount())));
  return hash.hex();
}

}  // namespace

std::optional<ForeignTable> read_foreign(const Item::Table& table, const std::string& where,
                                         Problems& problems) {
  std::optional<ForeignTable> foreign;
  const Member* files = nullptr;
  for (const Member& member : table) {
    if (member.name == "command") foreign = ForeignTable{texts_of(member, where, problems), {}, member.at};
    if (member.name == "files") files = &member;
  }
  if (files != nullptr && !foreign) problems.error(files->at, "files of " + where + " needs a command");
  if (files != nullptr && foreign) foreign->files = texts_of(*files, where, problems);
  return foreign;
}

void fill_command(const ForeignTable& foreign, Run& run, Problems& problems) {
  const auto values = values_by_name(run);
  run.strategy.command.clear();
  for (const std::string& argument : foreign.command) {
    const Filled result = filled(argument, values);
    if (result.open)
      problems.error(foreign.at, in_quotes(argument) + " has a { that is not closed; write {{ for a brace");
    if (!result.unknown.empty()) {
      std::vector<std::string> names;
      for (const auto& each : values) names.push_back(each.first);
      problems.error(foreign.at,
                     "a run has no value " + in_quotes(result.unknown) + key_advice(result.unknown, names));
    }
    run.strategy.command.push_back(result.text);
  }
  for (const std::string& file : foreign.files) run.strategy.files.push_back({file, ""});
}

void resolve_files(Experiment& experiment) {
  const fs::path folder = fs::absolute(experiment.file).parent_path();
  std::map<std::string, std::string> hashes;  // of each file once
  for (Run& run : experiment.runs) {
    if (!run.strategy.foreign()) continue;
    run.strategy.folder = folder.string();
    for (ForeignFile& file : run.strategy.files) {
      std::string& hash = hashes[file.name];
      if (hash.empty()) hash = hash_of(folder / file.name, experiment);
      file.sha256 = hash;
    }
  }
}

}  // namespace trainyard::experiments
