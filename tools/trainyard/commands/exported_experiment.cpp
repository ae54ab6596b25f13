#include <algorithm>
#include <regex>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text.h"
#include "models/datasets/datasets.h"
#include "models/exported/exported.h"
#include "models/tasks.h"
#include "tools/trainyard/cli/recorded_runs.h"
#include "tools/trainyard/commands/export_model.h"

namespace trainyard::tools {

namespace {

constexpr std::int64_t usual_window = 64;

std::string usual_dataset(const models::Exported& network) {
  const models::Exported::Input& input = network.inputs.front();
  const models::DataKind kind = models::find_task(network.task).data;
  if (kind == models::DataKind::text_pairs) return "multi30k";
  if (kind == models::DataKind::rows) return "csv";
  if (kind == models::DataKind::windows) return "tiny-shakespeare";
  if (input.dtype == models::Dtype::int64) return "imdb";
  const bool square = input.sizes.size() == 4 && input.sizes[2] == input.sizes[3];
  if (square && input.sizes[1] == 1) return "mnist";
  return square && input.sizes[1] == 3 ? "cifar10" : "folder";
}

// The fewest rows of an embedding of tokens. 0 if there is none.
std::int64_t rows_of(const nlohmann::json& about) {
  std::int64_t fewest = 0;
  for (const nlohmann::json& input : about.value("inputs", nlohmann::json::array()))
    if (const std::int64_t rows = input.value("values_below", std::int64_t{0}); rows > 0)
      fewest = fewest == 0 ? rows : std::min(fewest, rows);
  return fewest;
}

// The key of the data that the input needs, if any.
std::string data_key(const models::Exported& network, const nlohmann::json& about,
                     const models::Dataset& dataset) {
  const std::vector<std::int64_t>& sizes = network.inputs.front().sizes;
  if (dataset.kind == models::DataKind::windows) {
    const nlohmann::json most = about.value("/sizes/length/most"_json_pointer, nlohmann::json());
    const std::int64_t longest = most.is_number_integer() ? most.get<std::int64_t>() : usual_window;
    return fmt::format("window_length = {}\n", sizes[1] > 0 ? sizes[1] : std::min(longest, usual_window));
  }
  if (dataset.kind == models::DataKind::rows) return "target_column = \"target\"  # the name of yours\n";
  if (dataset.kind == models::DataKind::images) {
    const bool fixed = sizes.size() == 4 && sizes[2] > 0 && sizes[2] == sizes[3];
    return fixed && sizes[2] != dataset.shape.height ? fmt::format("image_size = {}\n", sizes[2]) : "";
  }
  const std::int64_t rows = rows_of(about);
  return rows > 0 && rows < models::DataChoice{}.vocabulary_max_size
             ? fmt::format("vocabulary_max_size = {}\n", rows)
             : "";
}

// "exported" if a parameter has no rule.
std::string initial_of(const nlohmann::json& about, bool per_seed) {
  if (per_seed) return "program";
  const nlohmann::json rules = about.value("initial", nlohmann::json::object());
  const bool all = std::ranges::none_of(rules, [](const nlohmann::json& rule) { return rule.is_null(); });
  return all ? "seed" : "exported";
}

// Those of the optimizer that the function returned.
std::string optimizer_keys(const nlohmann::json& about) {
  std::string text;
  const auto keys = about.value("optimizer", nlohmann::json{{"optimizer", "adam"}});
  for (const auto& [key, value] : keys.items()) text += fmt::format("{} = {}\n", key, value.dump());
  return text;
}

// The lines up to the data set. The first strategy is the baseline, unless there is "single".
std::string heading(const std::string& model, const std::vector<std::string>& strategies, int seeds,
                    const std::string& dataset) {
  const bool has_single = std::ranges::find(strategies, "single") != strategies.end();
  return fmt::format(
      "name = {0}\nmatrix = {{ model = [{0}], strategy = [{1}], seed = {{ count = {2} }} }}\n"
      "compare = {{ axis = \"strategy\", baseline = {3}, pair = [\"seed\"] }}\n\n[defaults]\ndataset = {4}\n",
      toml_text(model), joined(strategies, toml_text), seeds,
      toml_text(has_single ? "single" : strategies.front()), toml_text(dataset));
}

}  // namespace

std::string text_of(const ExportedExperiment& experiment) {
  const models::Exported network = models::read_exported(experiment.network);
  const auto about = nlohmann::json::parse(network.metadata, nullptr, /*allow_exceptions=*/false);
  const std::string dataset = experiment.dataset.empty() ? usual_dataset(network) : experiment.dataset;
  static const std::regex not_of_a_name("[^A-Za-z0-9_-]");
  const std::string name = std::regex_replace(experiment.network.stem().string(), not_of_a_name, "-");
  std::string text = heading(name, experiment.strategies, experiment.seeds, dataset);
  text += data_key(network, about, models::find_dataset(dataset));
  text += "epochs = 5\nbatch = 32\n" + optimizer_keys(about);
  text += fmt::format("\n[model.{}]\nexport = {}\ntask = {}\ninitial = {}\n", name,
                      toml_text(experiment.network.string()), toml_text(network.task),
                      toml_text(initial_of(about, experiment.per_seed)));
  return text;
}

std::string text_of(const ScriptExperiment& experiment) {
  std::vector<std::string> command{experiment.python, experiment.script};
  command.insert(command.end(), experiment.arguments.begin(), experiment.arguments.end());
  const std::string name = model_of_script(experiment.script);
  std::vector<std::string> names;
  std::string tables;
  for (const std::string& strategy : experiment.strategies) {
    if (strategy != "single" && strategy != "ddp")
      throw UserError(
          fmt::format("a script cannot be trained as \"{}\"", strategy),
          "use --strategies single ddp: one process, and --replicas processes under torchrun's variables");
    const int processes = strategy == "single" ? 1 : experiment.replicas;
    names.push_back(processes_name(processes));
    tables += fmt::format(
        "[strategy.{}]\ncommand = {}\nfiles = [{}]\nenv = {{ SEED = \"{{seed}}\" }}\nreplicas = {}\n",
        names.back(), nlohmann::json(command).dump(), toml_text(experiment.script), processes);
  }
  return heading(name, names, experiment.seeds, "of-the-script") +
         fmt::format(
             "epochs = {0}   # of run.epochs()\n[model.{1}]\ntitle = {1}\n"
             "[dataset.of-the-script]\ntitle = \"as the script reads it\"\n{2}",
             experiment.epochs, toml_text(name), tables);
}

}  // namespace trainyard::tools
