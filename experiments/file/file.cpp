#include "experiments/file/file.h"

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <system_error>

#include "experiments/config/problems.h"
#include "experiments/config/sheet.h"
#include "experiments/config/toml_tree.h"
#include "experiments/config/vocabulary.h"
#include "experiments/file/read_published.h"
#include "experiments/matrix/comparisons.h"
#include "experiments/matrix/expand.h"
#include "experiments/matrix/selection.h"

namespace trainyard::experiments {

namespace {

Loaded failed(const Location& at, const std::string& message) {
  return {std::nullopt, {{at, message, false}}};
}

std::string too_large() {
  return "is larger than " + std::to_string(max_file_bytes) + " bytes, the limit";
}

// At most one byte more than is allowed is read.
std::string read_limited(const std::filesystem::path& file) {
  errno = 0;
  std::ifstream in(file, std::ios::binary);
  std::string bytes(max_file_bytes + 1, '\0');
  if (in) in.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (!in.is_open() || in.bad()) throw std::system_error(errno, std::generic_category());
  bytes.resize(static_cast<std::size_t>(in.gcount()));
  return bytes;
}

void report_no_runs(const Sheet& sheet, const std::string& file, Problems& problems) {
  const Location at = sheet.matrix.given ? sheet.matrix.at : Location{file, 1, 1};
  const std::string advice = "; [matrix] lists alternatives, as in model = [\"mlp\"]";
  problems.error(
      at, "the experiment has no runs" + (sheet.exclude.empty() ? advice : "; [[exclude]] removes all"));
}

// What is expected of models that have runs.
std::vector<Expectation> expectations(const Sheet& sheet, Problems& problems) {
  std::vector<Expectation> found;
  const std::vector<std::string> models = used_models(sheet);
  for (const ExpectedLine& line : sheet.expect) {
    const bool used = std::find(models.begin(), models.end(), line.expectation.model) != models.end();
    if (used) found.push_back(line.expectation);
    if (!used && !sheet.matrix.broken && !sheet.overrides.contains("model"))
      problems.warning(
          line.at, "nothing is held against this: no run has the model " + in_quotes(line.expectation.model));
  }
  return found;
}

Experiment experiment_of(Sheet sheet, const std::vector<ExpandedRun>& runs) {
  Experiment experiment;
  experiment.name = std::move(sheet.name);
  experiment.data_seed = sheet.data_seed;
  experiment.data = std::move(sheet.data);
  experiment.machine = sheet.machine;
  for (const ExpandedRun& each : runs) {
    experiment.runs.push_back(each.run);
    experiment.strategy_locations.push_back(each.strategy_at);
    experiment.thread_locations.push_back(each.threads_at);
  }
  return experiment;
}

// What a tree stands for, with everything that is wrong with it reported.
Experiment experiment_of(const Item& root, const std::string& file, const Selection& selection,
                         Problems& problems) {
  Sheet sheet = read_sheet(root, file, problems);
  apply_set(selection.set, sheet, problems);
  check_hyperparameters(sheet.matrix, sheet.declared, problems);
  std::vector<ExpandedRun> runs = expand(sheet, problems);
  const std::vector<std::string> varied = varied_axes(sheet, runs);
  std::vector<Compare> compare = comparisons(sheet, runs, varied, problems);
  std::vector<Expectation> expect = expectations(sheet, problems);
  std::optional<Published> published;
  if (!sheet.published.empty())
    published = read_published(sheet.published, sheet.published_at, std::filesystem::path(file).parent_path(),
                               {model_names(sheet.declared), strategy_labels(sheet)}, problems);
  if (runs.empty() && problems.errors() == 0) report_no_runs(sheet, file, problems);
  apply_where(selection.where, runs, problems);
  apply_exclude_where(selection.exclude_where, runs, problems);
  Experiment experiment = experiment_of(std::move(sheet), runs);
  experiment.varied = varied;
  experiment.compare = std::move(compare);
  experiment.expect = std::move(expect);
  experiment.published = std::move(published);
  return experiment;
}

}  // namespace

Loaded load(const std::filesystem::path& file, const Selection& selection) {
  try {
    return load_text(read_limited(file), file, selection);
  } catch (const std::system_error& error) {
    return failed({.file = file.string()}, "cannot be read: " + error.code().message());
  }
}

Loaded load_text(const std::string& toml, const std::filesystem::path& name, const Selection& selection) {
  if (toml.size() > max_file_bytes) return failed({.file = name.string()}, too_large());
  try {
    Problems problems;
    const Item root = parse_toml(toml, name.string());
    Experiment experiment = experiment_of(root, name.string(), selection, problems);
    experiment.file = name;
    experiment.toml = toml;
    Loaded loaded{std::nullopt, problems.in_file_order()};
    if (problems.errors() == 0) loaded.experiment = std::move(experiment);
    return loaded;
  } catch (const NotToml& error) {
    return failed(error.at, error.message);
  }
}

}  // namespace trainyard::experiments
