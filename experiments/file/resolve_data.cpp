#include <cstdlib>
#include <deque>
#include <string_view>

#include "base/text.h"
#include "experiments/config/config_strategies.h"
#include "experiments/file/file.h"
#include "experiments/matrix/stage_split.h"
#include "experiments/run/run_model.h"
#include "models/datasets/published_files.h"
#include "models/samples/splits.h"

namespace trainyard::experiments {

namespace {

// The data that is read for one data set of the file.
struct Source {
  std::string name;
  std::filesystem::path folder;
};

// The part of a choice that the facts of its data depend on. All other members have their defaults.
models::DataChoice fact_inputs(const Source& source, const models::DataChoice& choice) {
  models::DataChoice inputs;
  if (models::find_dataset(source.name).kind != models::DataKind::images) {
    inputs = choice;
    inputs.fingerprint.clear();
    inputs.input = {};
  }
  inputs.dataset.clear();
  inputs.source = source.name;
  inputs.folder = source.folder;
  inputs.split_seed = choice.split_seed;
  inputs.image_size = choice.image_size;
  return inputs;
}

class Finder {
 public:
  Finder(const Experiment& experiment, const std::optional<std::filesystem::path>& directory,
         const models::Decoding& decoding)
      : experiment_(experiment), directory_(directory), decoding_(decoding) {}

  void resolve(Run& run) {
    models::DataChoice& choice = run.data;
    if (!run.declared.dataset_title.empty()) {  // the user's program reads it; only its name is known
      choice.source = choice.dataset;
      return;
    }
    const Source& found = source(choice.dataset);
    choice.source = found.name;
    choice.folder = found.folder;
    if (models::find_dataset(found.name).format == models::DataFormat::image_folder)
      choice.decoded = decoding_.folder;
    if (!choice.bpe_file.empty())
      choice.bpe_file = std::filesystem::absolute(experiment_.file.parent_path() / choice.bpe_file)
                            .lexically_normal()
                            .string();
    const models::DataFacts& known = facts(fact_inputs(found, choice));
    choice.fingerprint = known.fingerprint;
    choice.input = known.input;
    models::DataChoice whole = choice;
    whole.train_samples.reset();
    choice.available = models::training_samples(whole, known.sizes);
    check_enough(run, models::training_samples(choice, known.sizes));
  }

 private:
  void check_enough(const Run& run, std::int64_t samples) const {
    if (samples >= run.strategy.sharing_replicas()) return;
    throw UserError("the run \"" + label(run) + "\" has " + std::to_string(samples) +
                        " training samples of " + run.data.source + ", fewer than its " +
                        std::to_string(run.strategy.replicas) + " replicas",
                    "train with more samples or fewer replicas", {.file = experiment_.file.string()});
  }

  const Source& source(const std::string& dataset) {
    const auto known = sources_.find(dataset);
    if (known != sources_.end()) return known->second;
    return sources_.emplace(dataset, find(models::find_dataset(dataset))).first->second;
  }

  Source find(const models::Dataset& dataset) const {
    if (dataset.generated()) return {dataset.name, {}};
    std::vector<std::filesystem::path> looked_in;
    if (directory_ && !dataset.folders.empty()) looked_in.push_back(*directory_);
    const auto line = experiment_.data.find(dataset.name);
    const bool has_line = line != experiment_.data.end();
    if (has_line && directory_ && dataset.folders.empty()) looked_in.push_back(*directory_ / line->second);
    if (has_line && line->second != "synthetic")
      looked_in.push_back(experiment_.file.parent_path() / line->second);  // relative to the experiment file
    for (const std::filesystem::path& directory : looked_in)
      if (const auto folder = models::find_folder(dataset, directory))
        return {dataset.name, std::filesystem::absolute(*folder).lexically_normal()};
    if (has_line && line->second == "synthetic" && !dataset.stand_in.empty()) return {dataset.stand_in, {}};
    throw UserError(not_found(dataset, looked_in), advice(dataset), {.file = experiment_.file.string()});
  }

  static std::string not_found(const models::Dataset& dataset,
                               const std::vector<std::filesystem::path>& looked_in) {
    std::string text = "data set \"" + dataset.name + "\" ";
    if (looked_in.empty()) return text + "has no folder";
    return text +
           (dataset.format == models::DataFormat::csv            ? "has neither data.csv nor train.csv in "
            : dataset.format == models::DataFormat::image_folder ? "has neither class folders nor arrays in "
                                                                 : "was not found in ") +
           joined(looked_in, [](const std::filesystem::path& directory) { return directory.string(); });
  }

  std::string advice(const models::Dataset& dataset) const {
    if (dataset.format == models::DataFormat::csv)
      return "set [data] csv = \"FOLDER\" or \"FILE.csv\"; FOLDER must have data.csv, or train.csv with "
             "optional validation.csv and test.csv";
    if (dataset.folders.empty() && dataset.format != models::DataFormat::image_folder)
      return "set [data] " + dataset.name + " = \"FOLDER\"; FOLDER must have " + dataset.about;
    if (dataset.folders.empty())
      return "set [data] " + dataset.name +
             " = \"FOLDER\"; FOLDER must have one folder of PNG or JPEG files per class, or train-images.npy "
             "and train-labels.npy";
    const std::string place = directory_ ? shell_quoted(directory_->string()) : "DIR";
    const std::string download =
        models::find_known_dataset(dataset.name) == nullptr
            ? ""
            : "download it with `trainyard data get " + dataset.name + " --data " + place + "`; then ";
    return download + "set --data DIR or TRAINYARD_DATA, so that DIR contains the folder " +
           dataset.folders.front() + ", or set [data] " + dataset.name + " = \"FOLDER\" or \"synthetic\"";
  }

  // Computes the facts once per data and choice, whichever data set requested them.
  const models::DataFacts& facts(models::DataChoice question) {
    for (const auto& [known, answer] : facts_)
      if (known == question) return answer;
    models::DataFacts fresh =
        models::facts(models::find_dataset(question.source), question.folder, question, decoding_);
    return facts_.emplace_back(std::move(question), std::move(fresh)).second;
  }

  const Experiment& experiment_;
  const std::optional<std::filesystem::path>& directory_;
  const models::Decoding& decoding_;
  std::map<std::string, Source> sources_;  // by requested data set
  std::deque<std::pair<models::DataChoice, models::DataFacts>> facts_;
};

// The keys of the runs. UserError if two are equal.
std::vector<std::string> keys_of(const Experiment& experiment) {
  std::vector<std::string> keys;
  std::map<std::string_view, const Run*> first;
  keys.reserve(experiment.runs.size());
  for (const Run& run : experiment.runs) {
    const auto [same, is_new] = first.emplace(keys.emplace_back(run_key(run)), &run);
    if (is_new) continue;
    throw UserError("the runs \"" + label(*same->second) + "\" and \"" + label(run) +
                        "\" have the same key " + keys.back() +
                        ": they read the same data and do the same work",
                    "leave one out with [[exclude]]", {.file = experiment.file.string()});
  }
  return keys;
}

}  // namespace

std::optional<std::filesystem::path> data_search(
    const std::optional<std::filesystem::path>& from_command_line) {
  if (from_command_line) return from_command_line;
  const char* directory = std::getenv("TRAINYARD_DATA");  // NOLINT(concurrency-mt-unsafe)
  if (directory == nullptr || *directory == '\0') return std::nullopt;
  return directory;
}

void resolve_data(Experiment& experiment, const std::optional<std::filesystem::path>& directory,
                  const models::Decoding& decoding) {
  Finder finder(experiment, directory, decoding);
  for (Run& run : experiment.runs) {
    finder.resolve(run);
    if (!run.initial.empty()) run.initial_sha256 = checked_weights(run);
  }
  resolve_stages(experiment);
  resolve_files(experiment);
  experiment.keys = keys_of(experiment);
}

}  // namespace trainyard::experiments
