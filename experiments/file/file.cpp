#include "experiments/file/file.h"

#include <algorithm>
#include <set>
#include <string_view>

#include "base/plain_file.h"
#include "experiments/config/config.h"
#include "experiments/config/diagnostics.h"
#include "experiments/config/key_lookup.h"
#include "experiments/config/toml_tree.h"
#include "experiments/file/read_reference_results.h"
#include "experiments/matrix/expand.h"
#include "experiments/matrix/selection.h"

namespace trainyard::experiments {

std::string_view template_toml();  // template.toml: the first NAME in it is that of the experiment

namespace {

Loaded failed(const Location& at, const std::string& message) {
  return {std::nullopt, {{at, message, false}}};
}

void report_no_runs(const ExperimentConfig& config, const std::string& file, Diagnostics& problems) {
  const Location at = config.matrix.given ? config.matrix.at : Location{file, 1, 1};
  const std::string advice = "; list alternatives in [matrix], as in model = [\"mlp\"]";
  problems.error(at, "the experiment has no runs" +
                         (config.exclude.empty() ? advice : "; [[exclude]] removes all of them"));
}

// The expectations for models that have runs.
std::vector<Expectation> expectations(const ExperimentConfig& config, Diagnostics& problems) {
  std::vector<Expectation> found;
  const std::vector<std::string> models = used_models(config);
  for (const ExpectedLine& line : config.expect) {
    const bool used = contains(models, line.expectation.model);
    if (used) found.push_back(line.expectation);
    if (!used && !config.matrix.broken && !config.overrides.contains("model"))
      problems.warning(line.at, "this is never checked, because no run has the model " +
                                    in_quotes(line.expectation.model));
  }
  return found;
}

// The experiment of a TOML tree. All errors are reported.
Experiment experiment_of(const TomlNode& root, const std::string& file, const Selection& selection,
                         Diagnostics& problems) {
  ExperimentConfig config = read_config(root, file, problems);
  apply_set(selection.set, config, problems);
  if (selection.max_seeds > 0) use_seeds_until_decided(selection.max_seeds, config.matrix);
  check_hyperparameters(config.matrix, config.declared, problems);
  std::vector<ExpandedRun> runs = expand(config, problems);
  Experiment experiment;
  experiment.name = config.name;
  experiment.data_seed = config.data_seed;
  experiment.data = config.data;
  experiment.machine = config.machine;
  experiment.varied = varied_axes(config, runs);
  experiment.compare = comparisons(config, runs, experiment.varied, problems);
  for (Compare& each : experiment.compare) each.margins.own = config.declared.margins;
  experiment.expect = expectations(config, problems);
  experiment.metrics = config.declared.metrics;
  for (const auto& [label, foreign] : config.foreign) experiment.files_locations[label] = foreign.files_at;
  if (!config.published.empty())
    experiment.published =
        read_published(config.published, config.published_at, std::filesystem::path(file).parent_path(),
                       {model_names(config.declared), strategy_labels(config)}, problems);
  if (runs.empty() && problems.errors() == 0) report_no_runs(config, file, problems);
  apply_where(selection.where, runs, problems);
  apply_exclude_where(selection.exclude_where, runs, problems);
  for (const ExpandedRun& each : runs) {
    experiment.runs.push_back(each.run);
    experiment.strategy_locations.push_back(each.strategy_at);
    experiment.thread_locations.push_back(each.threads_at);
  }
  return experiment;
}

// Whether `--set` made a run that the file does not have.
bool has_other_runs(const Experiment& experiment, const Experiment& of_file) {
  std::set<std::string> known;
  for (const Run& run : of_file.runs) known.insert(run_key(run));
  return std::ranges::any_of(experiment.runs, [&](const Run& run) { return !known.contains(run_key(run)); });
}

bool is_try(const Experiment& experiment, const TomlNode& root, const Selection& selection) {
  if (!selection.as.empty() || selection.set.empty()) return false;
  Diagnostics ignored;
  const Experiment of_file = experiment_of(root, experiment.file.string(), {}, ignored);
  return ignored.errors() > 0 || has_other_runs(experiment, of_file);
}

}  // namespace

Loaded load(const std::filesystem::path& file, const Selection& selection) {
  const PlainContent content = plain_content(file, max_file_bytes);
  if (!content.problem.empty()) return failed({.file = file.string()}, "cannot be read: " + content.problem);
  return load_text(content.text, file, selection);
}

Loaded load_text(const std::string& toml, const std::filesystem::path& name, const Selection& selection) {
  try {
    Diagnostics problems;
    const TomlNode root = parse_toml(toml, name.string());
    Experiment experiment = experiment_of(root, name.string(), selection, problems);
    if (!selection.as.empty()) {
      experiment.name = selection.as;
      if (!is_experiment_name(selection.as))
        problems.error({.file = "--as"}, in_quotes(selection.as) + " must be " + name_rule);
    }
    experiment.file = name;
    experiment.toml = toml;
    Loaded loaded{std::nullopt, problems.in_file_order()};
    if (problems.errors() == 0 && is_try(experiment, root, selection)) {
      loaded.is_try = true;
      experiment.name += "-try";
    }
    if (problems.errors() == 0) loaded.experiment = std::move(experiment);
    return loaded;
  } catch (const NotToml& error) {
    return failed(error.at, error.message);
  }
}

std::string template_file(const std::string& name) {
  constexpr std::string_view place = "NAME";
  std::string text(template_toml());
  return text.replace(text.find(place), place.size(), experiment_name(name));
}

}  // namespace trainyard::experiments
