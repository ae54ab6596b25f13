#include "experiments/matrix/resolve.h"

#include <algorithm>

#include "experiments/config/key_forms.h"
#include "experiments/config/vocabulary.h"
#include "experiments/matrix/check_run.h"
#include "experiments/matrix/resolve_strategy.h"

namespace trainyard::experiments {

using models::Value;

namespace {

models::Hyperparameters resolve_hyperparameters(const RunSettings& settings, Problems& problems) {
  models::Hyperparameters values;
  for (const models::Parameter& parameter : settings.model().hyperparameters) {
    const Setting* found = settings.find(parameter.name);
    const Value raw = found ? found->value : parameter.fallback.value();
    const auto wrong = models::problem_with(parameter, raw);
    if (wrong)
      problems.error(settings.place(parameter.name),
                     parameter.name + " of model " + in_quotes(settings.model().name) + " " + *wrong);
    values[parameter.name] = wrong ? raw : models::coerced(parameter, raw);
  }
  return values;
}

// A model of the user's own has no data set that it usually takes: without one in the file it is empty.
models::DataChoice resolve_choice(const RunSettings& settings, std::uint64_t data_seed, Problems& problems) {
  models::DataChoice data;
  const auto& usual = settings.model().datasets;
  const Setting* dataset = settings.find("dataset");
  if (dataset == nullptr && usual.empty())
    problems.error(settings.place("dataset"),
                   "model " + in_quotes(settings.model().name) +
                       " has no data set, as in dataset = \"my-captions\" of [model." +
                       settings.model().name + "] or [defaults]");
  if (dataset != nullptr) data.dataset = std::get<std::string>(dataset->value);
  if (dataset == nullptr && !usual.empty()) data.dataset = usual.front();
  data.split_seed = data_seed;
  const auto split = std::get<std::vector<double>>(settings.value("data_split"));
  std::copy_n(split.begin(), data.split.size(), data.split.begin());
  data.train_samples = settings.optional_integer("train_samples");
  data.image_size = settings.integer("image_size");
  data.vocabulary_min_frequency = settings.integer("vocabulary_min_frequency");
  data.vocabulary_max_size = settings.integer("vocabulary_max_size");
  return data;
}

Declaration declaration_of(const RunSettings& settings, const std::string& dataset) {
  Declaration declared;
  if (is_declared(settings.model())) declared = {settings.model().title, settings.model().task, ""};
  if (const models::Dataset* own = settings.declared_dataset(dataset)) declared.dataset_title = own->title;
  return declared;
}

Optimizer resolve_optimizer(const RunSettings& settings) {
  Optimizer optimizer;
  optimizer.kind = settings.text("optimizer");
  const bool sgd = optimizer.kind == "sgd";
  const Setting* rate = settings.find("learning_rate");
  optimizer.learning_rate = rate ? std::get<double>(rate->value) : sgd ? 0.05 : 0.001;
  optimizer.momentum = sgd ? settings.number("momentum") : 0;
  optimizer.weight_decay = settings.number("weight_decay");
  optimizer.clip_norm = settings.number("clip_norm");
  optimizer.schedule = settings.text("learning_rate_schedule");
  if (optimizer.schedule == "step") {
    const std::int64_t third = (settings.integer("epochs") + 2) / 3;
    optimizer.schedule_epochs = settings.optional_integer("learning_rate_step_epochs").value_or(third);
    optimizer.schedule_factor = settings.number("learning_rate_factor");
  }
  return optimizer;
}

void resolve_batch(const RunSettings& settings, Run& run) {
  const Batch batch = batch_of(settings.value("batch"));
  run.batch_size = batch.size;
  run.batch_per = batch.per;
  run.global_batch = batch.per == "replica" ? batch.size * run.strategy.sharing_replicas() : batch.size;
}

std::string text_or_none(const RunSettings& settings, const char* key) {
  const std::string text = settings.text(key);
  return text == "none" ? "" : text;
}

}  // namespace

Run resolve(const Sheet& sheet, const Point& point, Problems& problems) {
  const RunSettings settings(sheet, point);
  Run run;
  run.model = settings.model().name;
  run.strategy = resolve_strategy(settings, problems);
  run.hyperparameters = resolve_hyperparameters(settings, problems);
  run.data = resolve_choice(settings, sheet.data_seed, problems);
  run.declared = declaration_of(settings, run.data.dataset);
  run.optimizer = resolve_optimizer(settings);
  run.epochs = settings.integer("epochs");
  resolve_batch(settings, run);
  run.gradient_accumulation = settings.integer("gradient_accumulation");
  run.sampler = settings.text("sampler");
  run.learning_rate_scaling = settings.text("learning_rate_scaling");
  run.augmentation = settings.text("augmentation");
  run.batch_norm = settings.text("batch_norm");
  run.precision = settings.text("precision");
  if (!run.strategy.independent()) {  // its ranks have one folder
    run.save = text_or_none(settings, "save");
    run.checkpoint = text_or_none(settings, "checkpoint");
  }
  run.seed = static_cast<std::uint64_t>(settings.integer("seed"));
  run.threads = settings.optional_integer("threads");
  for (const auto& [name, setting] : point.values) run.axes.emplace(name, setting.value);
  if (!run.data.dataset.empty()) check_run(settings, run, problems);
  if (const auto foreign = sheet.foreign.find(run.strategy.name); foreign != sheet.foreign.end())
    fill_command(foreign->second, run, problems);
  return run;
}

}  // namespace trainyard::experiments
