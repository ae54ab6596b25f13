#include "experiments/matrix/check_run.h"

#include <algorithm>

#include "base/error.h"
#include "base/joined.h"
#include "experiments/config/vocabulary.h"
#include "experiments/matrix/stage_split.h"

namespace trainyard::experiments {

namespace {

class Check {
 public:
  Check(const RunSettings& settings, Run& run, Problems& problems)
      : settings_(settings), run_(run), problems_(problems) {}

  void all() {
    const std::size_t errors = problems_.errors();
    if (own_model() || own_data()) own();
    data();
    batch();
    sampler();
    optimizer();
    if (problems_.errors() == errors && !own_model() && !own_data() && hyperparameters_fit()) layers();
  }

 private:
  bool own_model() const { return is_declared(settings_.model()); }
  bool own_data() const { return settings_.declared_dataset(run_.data.dataset) != nullptr; }

  // Only a program of the user's can train what is the user's own.
  void own() {
    if (settings_.kind().name == foreign_kind().name) return;
    const std::string what =
        own_model() ? "model " + in_quotes(run_.model) : "data set " + in_quotes(run_.data.dataset);
    problems_.error(settings_.place("strategy"),
                    "strategy " + in_quotes(run_.strategy.name) + " cannot train the " + what +
                        ", which is your own: only a strategy with a command can");
  }

  bool hyperparameters_fit() const {
    const auto& rows = settings_.model().hyperparameters;
    return std::none_of(rows.begin(), rows.end(), [&](const models::Parameter& parameter) {
      return models::problem_with(parameter, run_.hyperparameters.at(parameter.name)).has_value();
    });
  }

  void data() {
    if (own_data()) {
      for (const char* name : {"image_size", "vocabulary_min_frequency", "vocabulary_max_size"})
        if (const Setting* found = settings_.find_own(name))
          problems_.error(found->at, std::string(name) +
                                         " is for data sets of trainyard; a parameter of a model "
                                         "of your own can say it, under another name");
      return enough_samples();
    }
    if (const std::string wrong = dataset_problem(settings_.model(), run_.data.dataset);
        !own_model() && !wrong.empty()) {
      problems_.error(settings_.place("dataset"), wrong);
      return;
    }
    const models::DataKind kind = models::find_dataset(run_.data.dataset).kind;
    const bool images = kind == models::DataKind::images;
    if (!images && run_.augmentation != "none" && !refuse("augmentation", "images", kind))
      run_.augmentation = "none";
    if (images) {
      refuse("vocabulary_min_frequency", "texts", kind);
      refuse("vocabulary_max_size", "texts", kind);
    }
    if (run_.data.dataset != "folder") refuse("image_size", "the data set \"folder\"", kind);
    enough_samples();
  }

  void enough_samples() {
    if (run_.data.train_samples && *run_.data.train_samples < run_.strategy.sharing_replicas())
      problems_.error(settings_.place("train_samples"),
                      std::to_string(*run_.data.train_samples) + " train_samples are too few for " +
                          std::to_string(run_.strategy.replicas) + " replicas; each needs one at least");
  }

  // Reports what is said of this run, or of its model, and does not belong to its data.
  bool refuse(const std::string& name, const std::string& of, models::DataKind kind) {
    const Setting* found = settings_.find_own(name);
    if (found == nullptr) return false;
    problems_.error(found->at, name + " is a key of " + of + "; data set " + in_quotes(run_.data.dataset) +
                                   " has " + std::string(models::kind_name(kind)));
    return true;
  }

  // Each replica, micro-batch and turn of accumulation takes a sample at least.
  void batch() {
    const std::int64_t parts =
        run_.strategy.sharing_replicas() * run_.strategy.micro_batches * run_.gradient_accumulation;
    if (parts <= run_.global_batch) return;
    std::string text = "a batch of " + std::to_string(run_.global_batch) + " is too small for " +
                       std::to_string(run_.strategy.replicas) +
                       (run_.strategy.replicas == 1 ? " replica" : " replicas");
    if (run_.strategy.micro_batches > 1)
      text += " x " + std::to_string(run_.strategy.micro_batches) + " micro-batches";
    if (run_.gradient_accumulation > 1)
      text += " x " + std::to_string(run_.gradient_accumulation) + " turns of gradient accumulation";
    problems_.error(place_of_parts(), text + "; each needs a sample at least");
  }

  void sampler() {
    if (run_.sampler != "distributed" || run_.global_batch % run_.strategy.sharing_replicas() == 0) return;
    const char* name = settings_.find("batch") != nullptr ? "batch" : "replicas";
    problems_.error(settings_.place(name),
                    "a batch of " + std::to_string(run_.global_batch) + " does not divide by " +
                        std::to_string(run_.strategy.replicas) +
                        " replicas, and sampler \"distributed\" gives each equally many; give the batch per "
                        "replica, or take sampler \"exact\"");
  }

  Location place_of_parts() const {
    for (const char* name : {"batch", "micro_batches", "gradient_accumulation"})
      if (settings_.find(name) != nullptr) return settings_.place(name);
    return settings_.place("replicas");
  }

  void optimizer() {
    if (run_.optimizer.kind != "sgd") warn_unused("momentum", "is not used by " + run_.optimizer.kind);
    if (run_.optimizer.schedule != "step")
      for (const char* name : {"learning_rate_step_epochs", "learning_rate_factor"})
        warn_unused(name, "is not used by the learning-rate schedule " + in_quotes(run_.optimizer.schedule));
    if (run_.learning_rate_scaling != "none" && run_.batch_per == "global")
      warn_unused("learning_rate_scaling",
                  "has nothing to scale with: the batch is the same for any number of replicas");
  }

  bool warn_unused(const std::string& name, const std::string& why) {
    const Setting* found = settings_.find_own(name);
    if (found != nullptr) problems_.warning(found->at, name + " " + why);
    return found != nullptr;
  }

  void layers() try {
    const auto layers = model_layers(run_, models::input_shape(models::find_dataset(run_.data.dataset)));
    const auto normalises = [](const models::Layer& layer) { return layer.kind.starts_with("batch_norm"); };
    if (run_.batch_norm != "local" && std::none_of(layers.begin(), layers.end(), normalises) &&
        !warn_unused("batch_norm", "is not used by model " + in_quotes(run_.model) + ", which has none"))
      run_.batch_norm = "local";
    if (run_.strategy.stages > 1) stages(static_cast<std::int64_t>(layers.size()));
  } catch (const UserError& error) {
    problems_.error(settings_.place("dataset"), error.what());
  }

  void stages(std::int64_t layers) {
    const Strategy& strategy = run_.strategy;
    const std::string model = std::to_string(layers) + " layers of model " + in_quotes(run_.model);
    if (strategy.stages > layers) {
      problems_.error(settings_.place("stages"), std::to_string(strategy.stages) +
                                                     " stages are more than the " + model +
                                                     "; each needs one at least");
    } else if (strategy.split == "given" &&
               static_cast<std::int64_t>(strategy.boundaries.size()) != strategy.stages - 1) {
      problems_.error(settings_.place("stage_split"),
                      "stage_split has " + std::to_string(strategy.boundaries.size()) + " boundaries, and " +
                          std::to_string(strategy.stages) + " stages have " +
                          std::to_string(strategy.stages - 1));
    } else if (strategy.split == "given" && strategy.boundaries.back() >= layers) {
      problems_.error(settings_.place("stage_split"),
                      "stage_split ends at layer " + std::to_string(strategy.boundaries.back()) +
                          ", and the " + model + " are 0 to " + std::to_string(layers - 1));
    }
  }

  const RunSettings& settings_;
  Run& run_;
  Problems& problems_;
};

}  // namespace

void check_run(const RunSettings& settings, Run& run, Problems& problems) {
  Check(settings, run, problems).all();
}

std::string dataset_problem(const models::Model& model, const std::string& dataset) {
  if (std::find(model.datasets.begin(), model.datasets.end(), dataset) != model.datasets.end()) return "";
  return "model " + in_quotes(model.name) + " cannot be trained on " + in_quotes(dataset) + ", only on " +
         models::joined(model.datasets);
}

}  // namespace trainyard::experiments
