#include "experiments/run/keys.h"

#include <algorithm>
#include <initializer_list>
#include <iterator>

#include <fmt/format.h>

#include "base/named_row.h"
#include "base/text.h"
#include "experiments/run/key_rows.h"
#include "models/datasets/datasets.h"

namespace trainyard::experiments {

namespace {

constexpr Bound above_zero{0, false};
constexpr Bound below_one{1, false};

// "none" in the file is an empty string in the run.
Parameter kept_row(const char* name, std::vector<std::string> choices, const char* meaning) {
  Parameter parameter = text_row(name, std::move(choices), meaning);
  parameter.fallback = std::string("none");
  return parameter;
}

bool never(const Run& /*run*/) {
  return false;
}

bool is_sgd(const Run& run) {
  return run.optimizer.kind == "sgd";
}

bool has_rate_steps(const Run& run) {
  return run.optimizer.schedule == "step";
}

std::string unused_by_optimizer(const Run& run) {
  return is_sgd(run) ? "" : "is not used by " + run.optimizer.kind;
}

bool is_cosine(const Run& run) {
  return run.optimizer.schedule.starts_with("cosine");
}

std::string unused_without_cosine(const Run& run) {
  return is_cosine(run) ? "" : "is only used by cosine schedules";
}

bool is_adam(const Run& run) {
  return !is_sgd(run);
}

std::string unused_by_sgd(const Run& run) {
  return is_sgd(run) ? "is not used by sgd" : "";
}

std::string unused_by_schedule(const Run& run) {
  return has_rate_steps(run) ? ""
                             : "is not used by the learning-rate schedule \"" + run.optimizer.schedule + '"';
}

std::string unused_by_batch(const Run& run) {
  return run.learning_rate_scaling == "none" || run.batch_per == "replica"
             ? ""
             : "has no effect: the batch is the same for any number of replicas";
}

bool is_of(const std::string& dataset, std::initializer_list<models::DataKind> kinds) {
  const models::Dataset* row = row_or_null(models::datasets(), &models::Dataset::name, dataset);
  return row != nullptr && std::ranges::find(kinds, row->kind) != kinds.end();
}

bool has_windows(const std::string& dataset) {
  return is_of(dataset, {models::DataKind::windows});
}

// Whether the data set has a vocabulary of words.
bool has_words(const Run& run, const std::string& dataset) {
  return is_of(dataset, {models::DataKind::texts, models::DataKind::text_pairs}) ||
         (has_windows(dataset) && run.data.tokens == "words");
}

bool asks_for_words(const Run& run) {
  return has_words(run, run.data.dataset);
}

bool reads_words(const Run& run) {
  return has_words(run, run.data.source);
}

// A table has no stand-in.
bool asks_for_rows(const Run& run) {
  return is_of(run.data.dataset, {models::DataKind::rows});
}

// With one replica nothing is padded. But if the sampler is an axis, each sampler has its own run.
bool sampler_counts(const Run& run) {
  return run.sampler != "exact" && (run.strategy.sharing_replicas() > 1 || run.axes.contains("sampler"));
}

std::string unused_without_bpe(const Run& run) {
  return run.data.tokens == "bpe" ? "" : "is only used by tokens = \"bpe\"";
}

std::vector<Key> data_keys() {
  using models::DataChoice;
  return {
      {.parameter = text_row("dataset", models::dataset_names(), "what the model is trained on",
                             "the first that the model can use"),
       .member = &DataChoice::dataset,
       .original = true,
       .in_key = never,  // its source is
       .term = "data"},
      {.parameter = {.name = "data_split",
                     .type = ValueType::numbers,
                     .minimum = above_zero,
                     .maximum = below_one,
                     .minimum_length = 3,
                     .maximum_length = 3,
                     .meaning =
                         "fractions of train, validation and test; their sum is 1. If the data set has "
                         "its own test part, the first two divide the rest"},
       .member = &DataChoice::split,
       .json = "split",
       .original = true,
       .term = "data split"},
      {.parameter = integer_row("train_samples", from_one, {},
                                "how many training samples to use, at most as many as there are", "all"),
       .member = &DataChoice::train_samples,
       .original = true,
       .term = "training samples"},
      {.parameter =
           text_row("augmentation", {"none", "flip", "crop", "flip-crop"},
                    "changes of training images: mirrored at random, cropped at random after padding"),
       .member = &Run::augmentation,
       .term = "augmentation"},
      {.parameter = integer_row("image_size", from_one, Bound{1024},
                                "height and width to which images are scaled, but not arrays of \"folder\"",
                                "32 for pictures of \"folder\"; others are not scaled"),
       .member = &DataChoice::image_size,
       .has = [](const Run& run) { return run.data.image_size > 0; },
       .in_key = [](const Run& run) { return run.data.image_size > 0; }},
      {.parameter = integer_row("vocabulary_min_frequency", from_one, Bound{1'000'000},
                                "words: a token that is rarer than this in the training part is unknown"),
       .member = &DataChoice::vocabulary_min_frequency,
       .has = asks_for_words,
       .in_key = reads_words,
       .part_of = "vocabulary"},
      {.parameter = integer_row("vocabulary_max_size", Bound{5}, Bound{1'000'000},
                                "words: the most tokens of a vocabulary, including the four special ones"),
       .member = &DataChoice::vocabulary_max_size,
       .has = asks_for_words,
       .in_key = reads_words,
       .part_of = "vocabulary"},
      {.parameter = integer_row("window_length", from_one, Bound{1'000'000},
                                "windows of a text: tokens that the network reads at once"),
       .member = &DataChoice::window_length,
       .has = [](const Run& run) { return has_windows(run.data.dataset); },
       .in_key = [](const Run& run) { return has_windows(run.data.source); },
       .term = "window length"},
      {.parameter = text_row("tokens", {"characters", "words", "bpe"},
                             "windows of a text: what a token is; bpe: byte pair encoding with bpe_file"),
       .member = &DataChoice::tokens,
       .has = [](const Run& run) { return run.data.tokens != "characters"; },
       .term = "tokens"},
      {.parameter = text_row("bpe_file", {}, "tokens \"bpe\": a file merges.txt, as GPT-2 has it", "none"),
       .member = &DataChoice::bpe_file,
       .has = [](const Run& run) { return !run.data.bpe_file.empty(); },
       .in_key = never,  // the fingerprint has its content
       .unused = unused_without_bpe},
      {.parameter =
           text_row("source_language", {},
                    "\"text-pairs\": the language that the model reads, as in the file name train.de",
                    "the first of both names"),
       .member = &DataChoice::source_language,
       .has = [](const Run& run) { return !run.data.source_language.empty(); },
       .in_key = never,  // the fingerprint has the order of both languages
       .term = "source language"},
      {.parameter = text_row("target_column", {}, "rows of a table: name of the column to predict", "none"),
       .member = &DataChoice::target_column,
       .has = asks_for_rows,
       .in_key = asks_for_rows,
       .term = "target column"},
      {.parameter = text_row("input_columns", {},
                             "rows of a table: names of the input columns, with commas between them",
                             "all columns but the target"),
       .member = &DataChoice::input_columns,
       .has = [](const Run& run) { return asks_for_rows(run) && !run.data.input_columns.empty(); },
       .in_key = [](const Run& run) { return asks_for_rows(run) && !run.data.input_columns.empty(); },
       .term = "input columns"},
      {.parameter = text_row("target_kind", {"number", "class"},
                             "rows of a table: number trains a regression, class a classification"),
       .member = &DataChoice::target_kind,
       .has = asks_for_rows,
       .in_key = asks_for_rows,
       .term = "kind of target"},
  };
}

std::vector<Key> step_keys() {
  return {
      {.parameter = {.name = "batch",
                     .type = ValueType::integer,
                     .fallback = std::int64_t{128},
                     .minimum = from_one,
                     .maximum = Bound{1'000'000'000},
                     .meaning = "samples per step: of all replicas together, or of each. A plain number "
                                "means all together"},
       .other_form = "{ size = n, per = \"global\" | \"replica\" }",
       .part_of = "global_batch"},
      {.parameter =
           integer_row("gradient_accumulation", from_one, Bound{1'000'000},
                       "parts in which a rank computes its share of a step: less memory, same result"),
       .member = &Run::gradient_accumulation},
      {.parameter = text_row(
           "sampler", {"exact", "distributed"},
           "exact: each sample once per epoch; distributed: padded to equal parts with equal weights, as "
           "PyTorch's DistributedSampler and DDP do"),
       .member = &Run::sampler,
       .in_key = sampler_counts,
       .term = "sampler"},
      {.parameter = text_row("batch_norm", {"local", "sync"},
                             "statistics per replica and micro-batch, or over all replicas"),
       .member = &Run::batch_norm,
       .term = "batch normalisation"},
      {.parameter = text_row("precision", {"float32", "float64", "bfloat16", "float16", "tf32"},
                             "number format of the layers. float64: to see which differences are rounding. "
                             "bfloat16 and float16 are mixed precision: parameters, "
                             "gradients and loss stay float32, and float16 scales the loss. tf32: matrix "
                             "products on GPUs"),
       .member = &Run::precision,
       .term = "precision"},
      {.parameter = integer_row("threads", from_one, Bound{1024}, "threads of each rank",
                                "as many as the rank has cores"),
       .member = &Run::threads,
       .original = true,
       .in_key = [](const Run& run) { return run.axes.contains("threads"); },
       .term = "threads per rank"},
  };
}

std::vector<Key> optimizer_keys() {
  return {
      {.parameter = text_row("optimizer", {"sgd", "adam", "adamw"}, "the rule that updates the parameters"),
       .member = &Optimizer::kind,
       .json = "kind",
       .original = true,
       .term = "optimizer"},
      {.parameter = number_row("learning_rate", above_zero, {}, "step size of the optimizer",
                               "sgd 0.05; adam, adamw 0.001"),
       .member = &Optimizer::learning_rate,
       .original = true,
       .term = "learning rate"},
      {.parameter =
           number_row("momentum", from_zero, below_one, "momentum of sgd; other optimizers have none"),
       .member = &Optimizer::momentum,
       .original = true,
       .has = is_sgd,
       .unused = unused_by_optimizer,
       .part_of = "optimizer"},
      {.parameter =
           number_row("weight_decay", from_zero, {},
                      "L2 penalty: this times the parameter is added to its gradient. adamw: this times the "
                      "parameter and the learning rate is subtracted from the parameter"),
       .member = &Optimizer::weight_decay,
       .original = true,
       .term = "weight decay"},
      {.parameter = text_row("weight_decay_of", {"all", "matrices"},
                             "parameters with weight decay: all, or those with two dimensions or more, which "
                             "leaves out biases and the factors of normalisations"),
       .member = &Optimizer::weight_decay_of,
       .term = "parameters with weight decay"},
      {.parameter = text_row(
           "learning_rate_schedule", {"constant", "step", "cosine", "cosine-by-step"},
           "step: multiplied by a factor every few epochs; cosine: half a cosine down to "
           "learning_rate_min, from epoch to epoch; cosine-by-step: the same from step to step, after "
           "the warm-up"),
       .member = &Optimizer::schedule,
       .json = "schedule",
       .original = true,
       .term = "learning rate schedule"},
      {.parameter = integer_row("learning_rate_step_epochs", from_one, Bound{1'000'000},
                                "step schedule: epochs between two steps", "a third of the epochs"),
       .member = &Optimizer::schedule_epochs,
       .json = "schedule_epochs",
       .has = has_rate_steps,
       .in_key = has_rate_steps,
       .unused = unused_by_schedule,
       .part_of = "learning_rate_schedule"},
      {.parameter = number_row("learning_rate_factor", above_zero, Bound{1},
                               "step schedule: factor of the learning rate at each step"),
       .member = &Optimizer::schedule_factor,
       .json = "schedule_factor",
       .has = has_rate_steps,
       .in_key = has_rate_steps,
       .unused = unused_by_schedule,
       .part_of = "learning_rate_schedule"},
      {.parameter =
           number_row("learning_rate_min", from_zero, {}, "cosine schedules: learning rate at their end"),
       .member = &Optimizer::learning_rate_min,
       .has = is_cosine,
       .unused = unused_without_cosine,
       .term = "lowest learning rate"},
      {.parameter =
           integer_row("warmup_steps", from_zero, Bound{1'000'000'000},
                       "steps in which the learning rate rises linearly to its value, in any schedule"),
       .member = &Optimizer::warmup_steps,
       .term = "learning rate warm-up"},
      {.parameter = number_row("beta1", from_zero, below_one, "adam, adamw: decay of the mean of gradients"),
       .member = &Optimizer::beta1,
       .has = is_adam,
       .unused = unused_by_sgd,
       .term = "beta1"},
      {.parameter =
           number_row("beta2", from_zero, below_one, "adam, adamw: decay of the mean of their squares"),
       .member = &Optimizer::beta2,
       .has = is_adam,
       .unused = unused_by_sgd,
       .term = "beta2"},
      {.parameter =
           number_row("epsilon", above_zero, {}, "adam, adamw: is added to the root of the mean square"),
       .member = &Optimizer::epsilon,
       .has = is_adam,
       .unused = unused_by_sgd,
       .term = "epsilon"},
      {.parameter = text_row(
           "learning_rate_scaling", {"none", "linear", "sqrt"},
           "with a batch per replica: the rate grows with the number of replicas, or its square root"),
       .member = &Run::learning_rate_scaling,
       .in_key = never,  // it is in the optimizer's work
       .unused = unused_by_batch,
       .part_of = "learning_rate"},
      {.parameter = number_row("clip_norm", from_zero, {},
                               "largest L2 norm of all gradients together; 0: no clipping"),
       .member = &Optimizer::clip_norm,
       .term = "gradient clipping"},
  };
}

std::vector<Key> make_keys() {
  std::vector<Key> all{
      {.parameter = integer_row("epochs", from_one, Bound{1'000'000},
                                "passes over the training part; with steps_per_epoch: how often that many "
                                "steps are taken"),
       .member = &Run::epochs,
       .original = true,
       .term = "epochs"},
      {.parameter =
           integer_row("steps_per_epoch", from_zero, Bound{1'000'000'000},
                       "steps between two validations; 0: one pass over the training part. The passes "
                       "follow each other, each in a new order, and all steps have a full batch"),
       .member = &Run::steps_per_epoch,
       .term = "steps per epoch"},
      {.parameter = integer_row("seed", from_zero, {},
                                "of the initial weights and the order of samples; the split has data_seed"),
       .member = &Run::seed,
       .original = true},
      {.parameter = text_row("initial", {},
                             "a safetensors file with first weights, named as `save` names them; an exported "
                             "network has more forms",
                             "drawn from the seed"),
       .member = &Run::initial,
       .has = [](const Run& run) { return !run.initial.empty(); },
       .in_key = never}};  // the key has the hash of the file
  for (std::vector<Key>& part : std::array{data_keys(), step_keys(), optimizer_keys(), strategy_keys()})
    std::move(part.begin(), part.end(), std::back_inserter(all));
  all.push_back(
      {.parameter = kept_row("save", {"none", "last", "best"},
                             "weights to keep as safetensors: of the last epoch, or of the epoch with "
                             "the smallest validation loss"),
       .member = &Run::save,
       .is_work = false});
  all.push_back({.parameter = kept_row("checkpoint", {"none", "epoch"},
                                       "epoch: written after each epoch, so that an interrupted run resumes "
                                       "from its last checkpoint"),
                 .member = &Run::checkpoint,
                 .is_work = false});
  for (Key& key : all) {
    if (key.of != nullptr) key.place = KeyPlace::strategy;
    if (!key.parameter.fallback && key.parameter.fallback_text.empty())
      key.parameter.fallback = value_of(key, Run{});
  }
  return all;
}

// The value of a member, and back.
template <typename T>
std::optional<Value> as_value(const T& held) {
  return Value(held);
}
std::optional<Value> as_value(std::uint64_t held) {
  return Value(static_cast<std::int64_t>(held));
}
std::optional<Value> as_value(const std::optional<std::int64_t>& held) {
  return held ? std::optional<Value>(*held) : std::nullopt;
}
std::optional<Value> as_value(const std::array<double, 3>& held) {
  return Value(std::vector<double>(held.begin(), held.end()));
}

template <typename T>
void take_value(T& held, const Value& value) {
  held = std::get<T>(value);
}
void take_value(std::uint64_t& held, const Value& value) {
  held = static_cast<std::uint64_t>(std::get<std::int64_t>(value));
}
void take_value(std::optional<std::int64_t>& held, const Value& value) {
  held = std::get<std::int64_t>(value);
}
void take_value(std::array<double, 3>& held, const Value& value) {
  std::ranges::copy_n(std::get<std::vector<double>>(value).begin(), held.size(), held.begin());
}

std::string_view json_of_owner(std::monostate) {
  return "";
}
template <typename T, typename Part>
std::string_view json_of_owner(T Part::* /*member*/) {
  if (std::is_same_v<Part, Optimizer>) return "optimizer";
  if (std::is_same_v<Part, Strategy>) return "strategy";
  return std::is_same_v<Part, models::DataChoice> ? "data" : "";
}

}  // namespace

std::span<const Key> keys() {
  static const std::vector<Key> rows = make_keys();
  return rows;
}

bool is_mesh_number(const Key& key) {
  return key.of != nullptr && key.parameter.type == ValueType::integer;
}

bool is_in_run_key(const Key& key, const Run& run) {
  if (!key.is_work) return false;
  if (key.in_key != nullptr) return key.in_key(run);
  if (key.original) return (key.has == nullptr || key.has(run)) && value_of(key, run).has_value();
  static const Run before;
  return value_of(key, run) != value_of(key, before);
}

std::optional<Value> value_of(const Key& key, const Run& run) {
  std::optional<Value> value;
  with_member(key, run, [&](const auto& held) { value = as_value(held); });
  return value;
}

void set_value(const Key& key, Run& run, const Value& value) {
  with_member(key, run, [&](auto& held) { take_value(held, value); });
}

std::string_view part_name(const Key& key) {
  return std::visit([](auto member) { return json_of_owner(member); }, key.member);
}

const Key* key_or_null(std::string_view name) {
  return row_or_null(
      keys(), [](const Key& key) -> std::string_view { return key.parameter.name; }, name);
}

std::string allowed_text(const Key& key) {
  const std::string text = allowed_text(key.parameter);
  return key.other_form.empty() ? text : fmt::format("{} or {}", text, key.other_form);
}

}  // namespace trainyard::experiments
