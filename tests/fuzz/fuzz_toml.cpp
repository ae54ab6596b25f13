// Reads any bytes as an experiment file.
// Its lines `#set …`, `#where …` and `#exclude-where …` are options of the command line.
// The file is expanded, or every problem is one line.
// An expanded experiment takes all steps of `plan` that need no data: stages, names, keys, and JSON both
// ways.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <sstream>
#include <string>

#include <nlohmann/json.hpp>

#include "experiments/design/contract.h"
#include "experiments/file/file.h"
#include "experiments/matrix/stage_split.h"

namespace {

using namespace trainyard;
using namespace trainyard::experiments;

void must(bool holds) {
  if (!holds) std::abort();
}

Selection selection_of(const std::string& text) {
  Selection selection;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t space = line.find(' ');
    const std::string option = line.substr(0, space);
    const std::string value = space == std::string::npos ? "" : line.substr(space + 1);
    if (option == "#set") selection.set.push_back(value);
    if (option == "#where") selection.where.push_back(value);
    if (option == "#exclude-where") selection.exclude_where.push_back(value);
  }
  return selection;
}

template <typename T, typename Read>
void must_come_back(const T& value, Read read) {
  const std::string json = to_json(value).dump();
  must(to_json(read(nlohmann::json::parse(json))).dump() == json);
}

void go_on_with(const Run& run) {
  must(!label(run).empty() && run_key(run).size() == 12);
  must((run.strategy.stages > 1) == !stages_text(run).empty());
  must(run_from_json(nlohmann::json::parse(to_json(run).dump())) == run);
  const auto values = values_by_name(run);
  must(differing_terms(stated_by(values), stated_by(values), {}).empty());
  must(declared_mesh_difference(values, values).empty());
}

void go_on_with(Experiment experiment) {
  constexpr std::size_t enough = 32;
  experiment.runs.resize(std::min(experiment.runs.size(), enough));
  for (Run& run : experiment.runs)
    run.data.input = models::input_shape(models::find_dataset(run.data.dataset));
  resolve_stages(experiment);
  for (const Run& run : experiment.runs) go_on_with(run);
  for (const Compare& compare : experiment.compare) must_come_back(compare, compare_from_json);
  for (const Expectation& line : experiment.expect) must_come_back(line, expectation_from_json);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(bytes), size);
  Loaded loaded = load_text(text, "f.toml", selection_of(text));
  for (const auto& problem : loaded.problems) must(to_text(problem).find('\n') == std::string::npos);
  must(loaded.experiment || !loaded.problems.empty());
  if (!loaded.experiment) return 0;
  must(!loaded.experiment->runs.empty());
  go_on_with(std::move(*loaded.experiment));
  return 0;
}
