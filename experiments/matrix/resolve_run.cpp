#include "experiments/matrix/resolve_run.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "base/named_row.h"
#include "base/text.h"
#include "experiments/config/key_lookup.h"
#include "experiments/run/run_model.h"

namespace trainyard::experiments {

namespace {

models::Hyperparameters resolve_hyperparameters(const RunSettings& settings, Diagnostics& problems) {
  models::Hyperparameters values;
  for (const Parameter& parameter : settings.model().hyperparameters) {
    const Setting* found = settings.find(parameter.name);
    const Value raw = found ? found->value : parameter.fallback.value();
    const auto wrong = problem_with(parameter, raw);
    if (wrong)
      problems.error(settings.place(parameter.name), "{} of model {} {}", parameter.name,
                     in_quotes(settings.model().name), *wrong);
    values[parameter.name] = wrong ? raw : coerced(parameter, raw);
  }
  return values;
}

// A model of the user's own has no default data set: without one in the file the name is empty.
void resolve_dataset(const RunSettings& settings, Run& run, Diagnostics& problems) {
  if (settings.find("dataset") != nullptr) return;
  const auto& usual = settings.model().datasets;
  if (!usual.empty()) run.data.dataset = usual.front();
  if (usual.empty())
    problems.error(
        settings.place("dataset"),
        "model {} has no data set; add one, such as dataset = \"my-captions\", to [model.{}] or [defaults]",
        in_quotes(settings.model().name), settings.model().name);
}

Declaration declaration_of(const RunSettings& settings, const std::string& dataset) {
  Declaration declared;
  const models::Model& model = settings.model();
  if (is_declared(model) || is_exported(model))
    declared = {model.title, model.task, model.own_loss.parts, ""};
  if (const models::Dataset* own = settings.declared_dataset(dataset)) declared.dataset_title = own->title;
  return declared;
}

// Sets the defaults that depend on other keys.
void resolve_optimizer(const RunSettings& settings, Run& run) {
  Optimizer& optimizer = run.optimizer;
  if (optimizer.kind != "sgd") {
    optimizer.momentum = 0;
    if (settings.find("learning_rate") == nullptr) optimizer.learning_rate = 0.001;
  }
  if (optimizer.schedule == "step" && settings.find("learning_rate_step_epochs") == nullptr)
    optimizer.schedule_epochs = (run.epochs + 2) / 3;
}

void resolve_batch(const RunSettings& settings, Run& run) {
  const Setting* found = settings.find("batch");
  const Batch batch = batch_of(found != nullptr ? found->value : *run_parameter("batch")->fallback);
  run.batch_size = batch.size;
  run.batch_per = batch.per;
  run.global_batch = batch.per == "replica" ? batch.size * run.strategy.sharing_replicas() : batch.size;
}

// The file is relative to the folder of the experiment file, on the command line to the current folder.
void resolve_initial(const RunSettings& settings, Run& run, Diagnostics& problems) {
  if (run.initial.empty()) return;
  const Setting& found = *settings.find("initial");
  if (!run.initial.ends_with(safetensors_suffix))
    problems.error(found.at, "initial must be the name of a {} file, but is {}", safetensors_suffix,
                   in_quotes(run.initial));
  const bool on_line = found.at.line > 0;
  const auto folder = on_line ? std::filesystem::path(found.at.file).parent_path() : std::filesystem::path();
  run.initial = std::filesystem::absolute(folder / run.initial).lexically_normal();
}

// Which files of a run are kept. Independent ranks share one folder and keep nothing.
void resolve_kept(Run& run) {
  for (std::string* kept : {&run.save, &run.checkpoint})
    if (*kept == "none" || run.strategy.independent()) kept->clear();
}

// Sets the keys of the table. A key without a value stays as in a new `Run`. The kind of strategy has the
// defaults of the mesh.
void take_keys(const RunSettings& settings, Run& run) {
  for (const Key& key : keys()) {
    const Setting* found = settings.find(key.parameter.name);
    if (key.parameter.fallback || (found != nullptr && key.place == KeyPlace::anywhere))
      set_value(key, run, found != nullptr ? found->value : *key.parameter.fallback);
  }
}

using Range = StrategyKind::Range;

// "mp, pipeline, mp-ddp": the kinds that allow more than one of `part`.
std::string kinds_with(Range StrategyKind::*part) {
  std::string names;
  for (const StrategyKind& kind : strategy_kinds())
    if ((kind.*part).any()) names += (names.empty() ? "" : ", ") + kind.name;
  return names;
}

std::string strategy_text(const RunSettings& settings) {
  std::string text = "strategy " + in_quotes(settings.strategy());
  if (settings.kind().name != settings.strategy()) text += " (" + settings.kind().name + ")";
  return text;
}

void check_number(const Key& key, std::int64_t number, const RunSettings& settings, Diagnostics& problems) {
  const std::string& name = key.parameter.name;
  const Range& range = settings.kind().*key.of;
  if (range.has(number)) return;
  const std::string allowed =
      range.any() ? fmt::format(">= {}", range.minimum) : std::to_string(range.minimum);
  const std::string advice =
      range.any() ? "" : fmt::format("; strategies with {} are {}", name, kinds_with(key.of));
  problems.error(settings.place(name), "{} of {} must be {}, but is {}{}", name, strategy_text(settings),
                 allowed, number, advice);
}

// Reports a schedule or a split of a kind that has none.
void check_use(const Key& key, const RunSettings& settings, Diagnostics& problems) {
  const Setting* found = settings.find(key.parameter.name);
  if (found == nullptr || (settings.kind().*key.of).any() || found->value == Value(std::string("auto")))
    return;
  problems.error(found->at, "{} has no {}; strategies with one are {}", strategy_text(settings),
                 key.parameter.name, kinds_with(key.of));
}

void check_mesh(const RunSettings& settings, const Run& run, Diagnostics& problems) {
  for (const Key& key : keys()) {
    if (key.of == nullptr) continue;
    if (is_mesh_number(key))
      check_number(key, std::get<std::int64_t>(*value_of(key, run)), settings, problems);
    else
      check_use(key, settings, problems);
  }
}

void take_split(const RunSettings& settings, Strategy& strategy) {
  const Setting* split = settings.find("stage_split");
  if (split == nullptr) return;
  const auto* boundaries = std::get_if<std::vector<std::int64_t>>(&split->value);
  if (boundaries == nullptr) return;
  strategy.boundaries = *boundaries;
  strategy.split = "given";
  if (settings.find("stages") == nullptr) strategy.stages = static_cast<std::int64_t>(boundaries->size()) + 1;
}

void take_tensor_split(const RunSettings& settings, Strategy& strategy, Diagnostics& problems) {
  const Setting* split = settings.find("tensor_split");
  if (split == nullptr) return;
  if (strategy.tensor == 1 && settings.find("tensor") != nullptr) return;  // see Key::unused
  if (const auto* layers = std::get_if<std::vector<std::int64_t>>(&split->value)) {
    strategy.tensor_split = *layers;
    strategy.tensor_source = "given";
    return;
  }
  strategy.tensor_source = std::get<std::string>(split->value);
  if (strategy.tensor_source == "auto") return;
  const std::int64_t parts = named_split(strategy.tensor_source).parts;
  if (settings.find("tensor") != nullptr && parts != strategy.tensor)
    problems.error(split->at, "tensor_split has {} parts, but tensor is {}; leave out tensor", parts,
                   strategy.tensor);
  strategy.tensor = parts;
}

// Reports keys that the strategy's kind does not have, and numbers outside its ranges.
void resolve_strategy(const RunSettings& settings, Run& run, Diagnostics& problems) {
  const StrategyKind& kind = settings.kind();
  run.strategy.name = settings.strategy();
  run.strategy.kind = kind.name;
  for (const Key& key : keys()) {
    if (!is_mesh_number(key)) continue;
    const Setting* found = settings.find(key.parameter.name);
    set_value(key, run, found != nullptr ? found->value : Value((kind.*key.of).fallback));
  }
  if (kind.stages.any()) take_split(settings, run.strategy);
  if (kind.tensor.any()) take_tensor_split(settings, run.strategy, problems);
  if (run.strategy.stages == 1 && kind.stages.minimum == 1 && kind.micro_batches.any())
    run.strategy.micro_batches = 1;  // other numbers make no difference; see Key::unused
  const Setting* schedule = settings.find("schedule");
  // All schedules have the same order for one micro-batch.
  if (kind.micro_batches.any() && run.strategy.micro_batches > 1)
    run.strategy.schedule = schedule ? std::get<std::string>(schedule->value) : kind.schedule;
  const Setting* sharding = settings.find("sharding");
  if (kind.sharding.any())
    run.strategy.sharding = sharding ? std::get<std::string>(sharding->value) : "parameters";
  if (const Setting* bound = settings.find("staleness"))
    run.strategy.staleness = std::get<std::int64_t>(bound->value);
  if (const Setting* fewest = settings.find("min_replicas");
      fewest && fewest->value != Value(run.strategy.replicas))
    run.strategy.min_replicas = std::get<std::int64_t>(fewest->value);
  check_mesh(settings, run, problems);
}

const Setting* setting(const std::map<std::string, Settings>& tables, const std::string& table,
                       const std::string& name) {
  const Settings* settings = value_or_null(tables, table);
  return settings == nullptr ? nullptr : value_or_null(*settings, name);
}

std::string strategy_of(const MatrixPoint& point) {
  const Setting* named = value_or_null(point.values, "strategy");
  return named ? std::get<std::string>(named->value) : "single";
}

// Reports settings that do not fit together, at the value to be changed. A setting for all runs ([defaults],
// --set) that has no meaning for this run gets its default instead: augmentation of texts, synchronised
// normalisation of a model without any.
class Check {
 public:
  Check(const RunSettings& settings, Run& run, Diagnostics& problems)
      : settings_(settings), run_(run), problems_(problems) {}

  // `sizes_fit`: whether the hyper-parameters suit the model.
  void all(bool sizes_fit) {
    const std::size_t errors = problems_.errors();
    if (own_model() || own_data()) own();
    data();
    batch();
    sampler();
    servers();
    elastic();
    unused_keys();
    if (problems_.errors() == errors && !own_model() && !own_data() && sizes_fit) layers();
  }

 private:
  bool own_model() const { return is_declared(settings_.model()); }
  bool own_data() const { return settings_.declared_dataset(run_.data.dataset) != nullptr; }

  // Only the user's own program can train the user's own model or data.
  void own() {
    if (settings_.kind().name == foreign_kind().name) return;
    const std::string what =
        own_model() ? "model " + in_quotes(run_.model) : "data set " + in_quotes(run_.data.dataset);
    problems_.error(settings_.place("strategy"),
                    "strategy {} cannot train your own {}; use a strategy with a command",
                    in_quotes(run_.strategy.name), what);
  }

  void data() {
    if (own_data()) {
      for (const char* name :
           {"image_size", "vocabulary_min_frequency", "vocabulary_max_size", "window_length", "tokens",
            "bpe_file", "source_language", "target_column", "input_columns", "target_kind"})
        if (const Setting* found = settings_.find_own(name))
          problems_.error(found->at,
                          std::string(name) +
                              " is only for the data sets of trainyard; use a parameter of your model, "
                              "with another name");
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
    const bool windows = kind == models::DataKind::windows;
    const bool rows = kind == models::DataKind::rows;
    if (!rows)
      for (const char* name : {"target_column", "input_columns", "target_kind"})
        refuse(name, "rows of a table", kind);
    else if (run_.data.target_column.empty())
      problems_.error(settings_.place("dataset"),
                      "data set {} needs target_column: write the name of the column to predict",
                      in_quotes(run_.data.dataset));
    if (images || rows || (windows && run_.data.tokens != "words")) {
      const char* of = windows ? "texts and of tokens = \"words\"" : "texts";
      refuse("vocabulary_min_frequency", of, kind);
      refuse("vocabulary_max_size", of, kind);
    }
    if (!windows) refuse("window_length", "windows of a text", kind);
    if (!windows && !refuse("tokens", "windows of a text", kind)) run_.data.tokens = "characters";
    if (run_.data.tokens != "bpe") run_.data.bpe_file.clear();
    if (run_.data.tokens == "bpe" && run_.data.bpe_file.empty())
      problems_.error(settings_.place("tokens"), "tokens = \"bpe\" needs bpe_file = \"merges.txt\"");
    if (run_.data.dataset != "text-pairs" && !refuse("source_language", "\"text-pairs\"", kind))
      run_.data.source_language.clear();
    if (!images && !refuse("image_size", "images", kind)) run_.data.image_size = 0;
    if (run_.data.dataset == "folder" && run_.data.image_size == 0)
      run_.data.image_size = models::usual_image_size;
    enough_samples();
  }

  void enough_samples() {
    if (run_.data.train_samples && *run_.data.train_samples < run_.strategy.sharing_replicas())
      problems_.error(settings_.place("train_samples"),
                      "{} train_samples are too few for {} replicas; each needs at least one",
                      *run_.data.train_samples, run_.strategy.replicas);
  }

  // Reports a setting of this run, or of its model, that does not belong to its data.
  bool refuse(const std::string& name, const std::string& of, models::DataKind kind) {
    const Setting* found = settings_.find_own(name);
    if (found == nullptr) return false;
    problems_.error(found->at, "{} is a key of {}; data set {} has {}", name, of,
                    in_quotes(run_.data.dataset), models::kind_name(kind));
    return true;
  }

  // Each replica, micro-batch and turn of accumulation needs at least one sample.
  void batch() {
    const std::int64_t parts = parts_of_batch(run_);
    if (parts <= run_.global_batch) return;
    std::string text =
        fmt::format("a batch of {} is too small for {}{}", run_.global_batch, run_.strategy.replicas,
                    run_.strategy.replicas == 1 ? " replica" : " replicas");
    if (run_.strategy.micro_batches > 1)
      text += fmt::format(" x {} micro-batches", run_.strategy.micro_batches);
    if (run_.gradient_accumulation > 1)
      text += fmt::format(" x {} turns of gradient accumulation", run_.gradient_accumulation);
    problems_.error(place_of_parts(), text + "; each needs at least one sample");
  }

  void sampler() {
    if (run_.sampler == "distributed" && settings_.model().own_loss.is_weighted())
      problems_.error(settings_.place("sampler"),
                      "the loss of model {} has weights, which sampler \"distributed\" would not sum over "
                      "replicas; use sampler \"exact\"",
                      in_quotes(run_.model));
    if (run_.sampler != "distributed" || run_.global_batch % run_.strategy.sharing_replicas() == 0) return;
    const char* name = settings_.find("batch") != nullptr ? "batch" : "replicas";
    problems_.error(settings_.place(name),
                    "a batch of {} cannot be divided equally among {} replicas, as sampler \"distributed\" "
                    "requires; give the batch per replica, or use sampler \"exact\"",
                    run_.global_batch, run_.strategy.replicas);
  }

  void servers() {
    const Strategy& strategy = run_.strategy;
    if (const Setting* bound = settings_.find("staleness"); bound != nullptr && !strategy.is_async())
      problems_.error(bound->at, "staleness needs mode = \"async\"; strategy {} is \"{}\"",
                      in_quotes(strategy.name), strategy.servers > 0 ? strategy.mode : strategy.kind);
    if (strategy.servers == 0) return;
    for (const char* name : {"batch_norm", "sampler"})
      if (const std::string value = name == std::string("sampler") ? run_.sampler : run_.batch_norm;
          strategy.is_async() && (value == "sync" || value == "distributed"))
        problems_.error(settings_.place(name),
                        "{} = {} needs replicas in step; those of strategy {} are asynchronous", name,
                        in_quotes(value), in_quotes(strategy.name));
    if (run_.precision == "float16")
      problems_.error(settings_.place("precision"),
                      "servers cannot scale the loss, as float16 requires; use bfloat16");
    if (settings_.model().own_loss.is_weighted())
      problems_.error(settings_.place("strategy"),
                      "the loss of model {} has weights, which servers would not divide by; use ddp",
                      in_quotes(run_.model));
  }

  // The cut of a batch may change between attempts only if the result stays the same.
  void elastic() {
    const Setting* fewest = settings_.find("min_replicas");
    if (fewest == nullptr) return;
    const auto refuse_if = [&](bool wrong, const std::string& why) {
      if (wrong) problems_.error(fewest->at, "min_replicas " + why);
    };
    const Strategy& strategy = run_.strategy;
    if (!settings_.kind().elastic)
      return refuse_if(true,
                       "is a key of ddp; strategy " + in_quotes(strategy.name) + " is " + strategy.kind);
    refuse_if(strategy.min_replicas > strategy.replicas,
              fmt::format("of strategy {} must be at most its {} replicas, but is {}",
                          in_quotes(strategy.name), strategy.replicas, strategy.min_replicas.value_or(0)));
    if (!strategy.min_replicas) return;
    refuse_if(run_.batch_per == "replica",
              "needs a batch over all replicas; write batch as one number, for example batch = 128");
    refuse_if(run_.sampler == "distributed",
              "needs sampler \"exact\", because padding depends on the replicas");
    refuse_if(run_.checkpoint.empty(),
              "needs checkpoint = \"epoch\" in [defaults], because attempts resume from checkpoints");
  }

  Location place_of_parts() const {
    for (const char* name : {"batch", "micro_batches", "gradient_accumulation"})
      if (settings_.find(name) != nullptr) return settings_.place(name);
    return settings_.place("replicas");
  }

  void unused_keys() {
    for (const Key& key : keys())
      if (key.unused != nullptr)
        if (const std::string why = key.unused(run_); !why.empty()) warn_unused(key.parameter.name, why);
  }

  bool warn_unused(const std::string& name, const std::string& why) {
    const Setting* found = settings_.find_own(name);
    if (found != nullptr) problems_.warning(found->at, "{} {}", name, why);
    return found != nullptr;
  }

  void layers() try {
    const models::Dataset& dataset = models::find_dataset(run_.data.dataset);
    models::InputShape input = models::input_shape(dataset);
    if (run_.exported) {
      input = models::input_shape(dataset, run_.data);
      input.vocabulary = input.target_vocabulary = 0;  // only the data says them
    }
    const models::Graph graph = graph_of(run_, input);
    const std::vector<models::Node>& nodes = graph.nodes;
    const auto normalises = [](const models::Node& node) {
      return node.kind.find("batch_norm") != std::string::npos;
    };
    if (run_.batch_norm != "local" && std::ranges::none_of(nodes, normalises) &&
        !warn_unused("batch_norm",
                     "is not used by model " + in_quotes(run_.model) + ", which has no batch normalisation"))
      run_.batch_norm = "local";
    if (run_.strategy.min_replicas && run_.batch_norm == "local" && std::ranges::any_of(nodes, normalises))
      warn_unused(
          "min_replicas",
          "changes the result a little: batch_norm \"local\" takes the statistics of each replica; use "
          "\"sync\"");
    if (run_.exported && !split_of_batch(nodes)) split_of_batch(graph.evaluation->nodes);
    if (run_.strategy.stages > 1 || run_.strategy.split == "given") stages(nodes);
    if (run_.strategy.tensor > 1) tensor(graph);
  } catch (const UserError& error) {
    problems_.error(settings_.place("dataset"), error.what());
  }

  // Operators that draw one number per value of a batch draw others for its parts. Returns true if one is refused.
  bool split_of_batch(const std::vector<models::Node>& nodes) {
    const std::int64_t parts = parts_of_batch(run_);
    const auto draws = std::ranges::find_if(nodes, &models::Node::draws);
    if (parts == 1 || draws == nodes.end()) return false;
    problems_.error(settings_.place("strategy"),
                    "node {} of model {} draws random numbers for the whole batch ({}), so a batch cannot be "
                    "split into {} parts; use strategy single or mp, or draw with dropout",
                    draws->path, in_quotes(run_.model), draws->kind, parts);
    return true;
  }

  void tensor(const models::Graph& graph) try {
    layers_to_split(run_, graph);
  } catch (const UserError& error) {
    problems_.error(settings_.place(run_.strategy.tensor_source == "auto" ? "tensor" : "tensor_split"),
                    error.what());
  }

  void stages(const std::vector<models::Node>& nodes) {
    const auto layers = static_cast<std::int64_t>(nodes.size());
    const Strategy& strategy = run_.strategy;
    const std::string model = fmt::format("{} layers of model {}", layers, in_quotes(run_.model));
    const std::int64_t possible = std::ranges::count_if(nodes, &models::Node::may_begin_stage);
    if (strategy.split == "given")
      for (const std::int64_t begin : strategy.boundaries)
        if (begin > 0 && begin < layers && !nodes[static_cast<std::size_t>(begin)].may_begin_stage)
          problems_.error(settings_.place("stage_split"),
                          "no stage of model {} can begin at layer {}, because it would separate an operator "
                          "that writes in place from others that use the same memory, or because evaluation "
                          "uses the parameters in another order",
                          in_quotes(run_.model), begin);
    if (strategy.stages > possible && possible < layers) {
      problems_.error(settings_.place("stages"),
                      "{} stages are more than the {} layers of model {} at which a stage can begin",
                      strategy.stages, possible, in_quotes(run_.model));
    } else if (strategy.stages > layers) {
      problems_.error(settings_.place("stages"), "{} stages are more than the {}; each needs at least one",
                      strategy.stages, model);
    } else if (strategy.split == "given" &&
               static_cast<std::int64_t>(strategy.boundaries.size()) != strategy.stages - 1) {
      problems_.error(settings_.place("stage_split"), "stage_split has {} boundaries, but {} stages need {}",
                      strategy.boundaries.size(), strategy.stages, strategy.stages - 1);
    } else if (strategy.split == "given" && strategy.boundaries.back() >= layers) {
      problems_.error(settings_.place("stage_split"), "stage_split ends at layer {}, but the {} are 0 to {}",
                      strategy.boundaries.back(), model, layers - 1);
    }
  }

  const RunSettings& settings_;
  Run& run_;
  Diagnostics& problems_;
};

void resolve_exported(const RunSettings& settings, Run& run, Diagnostics& problems) {
  const models::Model& model = settings.model();
  run.exported = {.path = model.file, .sha256 = model.sha256, .initial = model.initial};
  if (model.initial != "program") return;
  try {
    run.exported->weights = seed_weights(model, run.seed);
  } catch (const UserError& error) {
    problems.error(settings.place("seed"), error.what());
  }
}

}  // namespace

RunSettings::RunSettings(const ExperimentConfig& config, const MatrixPoint& point)
    : config_(config),
      point_(point),
      model_(model_or_null(std::get<std::string>(point.values.at("model").value), config.declared)),
      strategy_(strategy_of(point)),
      kind_(strategy_kind(config, strategy_)) {}

// `--set replicas=4` means the strategies that have replicas.
bool RunSettings::has_use_for(const std::string& name) const {
  const Key* key = key_or_null(name);
  return key == nullptr || key->of == nullptr || (kind_->*key->of).any();
}

const Setting* RunSettings::find(const std::string& name) const {
  if (const Setting* found = value_or_null(point_.values, name)) return found;
  if (const Setting* found = value_or_null(config_.overrides, name); found != nullptr && has_use_for(name))
    return found;
  if (const Setting* found = setting(config_.strategies, strategy_, name)) return found;
  if (const Setting* found = setting(config_.models, model_->name, name)) return found;
  return value_or_null(config_.defaults, name);
}

const Setting* RunSettings::find_own(const std::string& name) const {
  const Setting* found = find(name);
  const bool for_all =
      found == value_or_null(config_.defaults, name) || found == value_or_null(config_.overrides, name);
  return for_all ? nullptr : found;
}

Location RunSettings::place(const std::string& name) const {
  const Setting* found = find(name);
  return found ? found->at : point_.at;
}

std::string dataset_problem(const models::Model& model, const std::string& dataset) {
  if (std::ranges::find(model.datasets, dataset) != model.datasets.end()) return "";
  return fmt::format("model {} cannot be trained on {}, only on {}", in_quotes(model.name),
                     in_quotes(dataset), joined(model.datasets));
}

Run resolve(const ExperimentConfig& config, const MatrixPoint& point, Diagnostics& problems) {
  const RunSettings settings(config, point);
  Run run;
  run.model = settings.model().name;
  resolve_strategy(settings, run, problems);
  const std::size_t errors = problems.errors();
  run.hyperparameters = resolve_hyperparameters(settings, problems);
  const bool sizes_fit = problems.errors() == errors;
  take_keys(settings, run);
  run.data.split_seed = config.data_seed;
  resolve_dataset(settings, run, problems);
  run.declared = declaration_of(settings, run.data.dataset);
  if (is_exported(settings.model())) resolve_exported(settings, run, problems);
  resolve_optimizer(settings, run);
  resolve_batch(settings, run);
  resolve_initial(settings, run, problems);
  resolve_kept(run);
  for (const auto& [name, setting] : point.values) run.axes.emplace(name, setting.value);
  if (!run.data.dataset.empty()) Check(settings, run, problems).all(sizes_fit);
  if (const auto foreign = config.foreign.find(run.strategy.name); foreign != config.foreign.end())
    fill_command(foreign->second, run, problems);
  return run;
}

}  // namespace trainyard::experiments
