#include "experiments/run/keys.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "models/datasets/datasets.h"

namespace trainyard::experiments {

namespace {

constexpr Bound above_zero{0, false};
constexpr Bound from_zero{0, true};
constexpr Bound from_one{1, true};
constexpr Bound below_one{1, false};

Parameter row(const char* name, ValueType type, const char* meaning) {
  Parameter parameter;
  parameter.name = name;
  parameter.type = type;
  parameter.meaning = meaning;
  return parameter;
}

Parameter integer_row(const char* name, Bound minimum, std::optional<Bound> maximum, const char* meaning) {
  Parameter parameter = row(name, ValueType::integer, meaning);
  parameter.minimum = minimum;
  parameter.maximum = maximum;
  return parameter;
}

Parameter number_row(const char* name, Bound minimum, std::optional<Bound> maximum, const char* meaning) {
  Parameter parameter = integer_row(name, minimum, maximum, meaning);
  parameter.type = ValueType::number;
  return parameter;
}

Parameter text_row(const char* name, std::vector<std::string> choices, const char* meaning) {
  Parameter parameter = row(name, ValueType::text, meaning);
  parameter.choices = std::move(choices);
  return parameter;
}

Parameter with_default(Parameter parameter, Value value) {
  parameter.fallback = std::move(value);
  return parameter;
}

Parameter with_default_text(Parameter parameter, const char* text) {
  parameter.fallback_text = text;
  return parameter;
}

Parameter data_split_row() {
  Parameter parameter =
      row("data_split", ValueType::numbers,
          "fractions of train, validation and test, which sum to 1; of a data set with its own "
          "test part the first two divide the rest");
  parameter.minimum = above_zero;
  parameter.maximum = below_one;
  parameter.minimum_length = parameter.maximum_length = 3;
  return with_default(std::move(parameter), std::vector<double>{0.8, 0.1, 0.1});
}

Parameter step_epochs_row() {
  return with_default_text(integer_row("learning_rate_step_epochs", from_one, Bound{1'000'000},
                                       "of the step schedule: epochs between two steps"),
                           "a third of the epochs");
}

Parameter stage_split_row() {
  Parameter parameter = row("stage_split", ValueType::integers,
                            "the first layer of each stage but the first, counted from 0; \"auto\" balances "
                            "the counted cost of the layers");
  parameter.minimum = from_one;
  parameter.minimum_length = 1;
  parameter.maximum_length = 1023;
  return with_default_text(std::move(parameter), "\"auto\"");
}

std::vector<Key> data_keys() {
  return {
      {with_default_text(text_row("dataset", models::dataset_names(), "what the model is trained on"),
                         "the first that the model can use")},
      {data_split_row()},
      {with_default_text(integer_row("train_samples", from_one, {}, "a cap on the training part"), "all")},
      {with_default(
          text_row("augmentation", {"none", "flip", "crop", "flip-crop"},
                   "of images in training: mirrored at random, and cut at random from a padded one"),
          std::string("none"))},
      {with_default(integer_row("image_size", from_one, Bound{1024},
                                "of the data set \"folder\": height and width that images are brought to"),
                    std::int64_t{32})},
      {with_default(integer_row("vocabulary_min_frequency", from_one, Bound{1'000'000},
                                "of texts: a token that the training part has less often is unknown"),
                    std::int64_t{2})},
      {with_default(integer_row("vocabulary_max_size", Bound{5}, Bound{1'000'000},
                                "of texts: the most tokens of a vocabulary, the four special ones included"),
                    std::int64_t{20000})},
  };
}

std::vector<Key> step_keys() {
  return {
      {.parameter =
           with_default(integer_row("batch", from_one, Bound{1'000'000'000},
                                    "samples a step, over all replicas or of each; a plain number is "
                                    "over all"),
                        std::int64_t{128}),
       .other_form = "{ size = n, per = \"global\" | \"replica\" }"},
      {with_default(integer_row("gradient_accumulation", from_one, Bound{1'000'000},
                                "turns in which a rank computes its part of a step; less memory, same step"),
                    std::int64_t{1})},
      {with_default(text_row("sampler", {"exact", "distributed"},
                             "each sample once an epoch, or padded to equal parts and equal weights, as "
                             "PyTorch's DistributedSampler and DDP do"),
                    std::string("exact"))},
      {with_default(text_row("batch_norm", {"local", "sync"},
                             "statistics of each replica and micro-batch, or over all replicas"),
                    std::string("local"))},
      {with_default(text_row("precision", {"float32", "bfloat16", "float16", "tf32"},
                             "what the layers compute in; bfloat16 and float16 are mixed: parameters, their "
                             "gradients and the loss stay float32, and float16 scales the loss; tf32 is for "
                             "products on GPUs"),
                    std::string("float32"))},
      {with_default_text(integer_row("threads", from_one, Bound{1024}, "threads of each rank"),
                         "as many as the rank has cores")},
  };
}

std::vector<Key> optimizer_keys() {
  return {
      {with_default(text_row("optimizer", {"sgd", "adam", "adamw"}, "the rule that updates the parameters"),
                    std::string("sgd"))},
      {with_default_text(number_row("learning_rate", above_zero, {}, "step size of the optimizer"),
                         "0.05; adam, adamw 0.001")},
      {with_default(number_row("momentum", from_zero, below_one, "momentum of sgd; the others have none"),
                    0.9)},
      {with_default(number_row("weight_decay", from_zero, {},
                               "L2 penalty: this times a parameter is added to its gradient; of adamw: times "
                               "the learning rate, taken from the parameter"),
                    0.0)},
      {with_default(
          text_row("learning_rate_schedule", {"constant", "step", "cosine"},
                   "step: multiplied by a factor every few epochs; cosine: half a period down to 0"),
          std::string("constant"))},
      {step_epochs_row()},
      {with_default(number_row("learning_rate_factor", above_zero, Bound{1},
                               "of the step schedule: what the rate is multiplied by"),
                    0.1)},
      {with_default(
          text_row("learning_rate_scaling", {"none", "linear", "sqrt"},
                   "with a batch per replica: the rate grows with the number of replicas, or its root"),
          std::string("none"))},
      {with_default(number_row("clip_norm", from_zero, {},
                               "largest L2 norm of all gradients together; 0 clips nothing"),
                    0.0)},
  };
}

std::vector<Key> strategy_keys() {
  return {
      {with_default_text(integer_row("replicas", from_one, Bound{1024},
                                     "copies of the model, each with its part of the batch"),
                         "ddp, mp-ddp 2; others 1"),
       KeyPlace::strategy},
      {with_default_text(integer_row("stages", from_one, Bound{1024},
                                     "parts that the layers of each copy are cut into, each a rank"),
                         "mp, pipeline, mp-ddp 2; others 1"),
       KeyPlace::strategy},
      {with_default_text(integer_row("micro_batches", from_one, Bound{65536},
                                     "parts of a replica's batch that are in the stages at the same time"),
                         "pipeline, mp-ddp 4; others 1"),
       KeyPlace::strategy},
      {with_default_text(text_row("schedule", {"gpipe", "1f1b"},
                                  "all forward and then all backward, or one forward, one backward"),
                         "\"1f1b\""),
       KeyPlace::strategy},
      {.parameter = stage_split_row(), .place = KeyPlace::strategy, .other_form = "\"auto\""},
  };
}

std::vector<Key> make_keys() {
  std::vector<Key> all{
      {with_default(integer_row("epochs", from_one, Bound{1'000'000}, "passes over the training part"),
                    std::int64_t{10})},
      {with_default(
          integer_row("seed", from_zero, {}, "of weights and sample order; the split has data_seed"),
          std::int64_t{0})}};
  for (std::vector<Key>& part : std::array{data_keys(), step_keys(), optimizer_keys(), strategy_keys()})
    std::move(part.begin(), part.end(), std::back_inserter(all));
  all.push_back(
      {with_default(text_row("save", {"none", "last", "best"},
                             "weights to keep as safetensors: of the last epoch, or of the one with "
                             "the least validation loss"),
                    std::string("none"))});
  all.push_back({with_default(text_row("checkpoint", {"none", "epoch"},
                                       "epoch: written after each epoch, so that an interrupted run goes on "
                                       "from its last one instead of beginning anew"),
                              std::string("none"))});
  return all;
}

}  // namespace

std::span<const Key> keys() {
  static const std::vector<Key> rows = make_keys();
  return rows;
}

std::string allowed_text(const Key& key) {
  const std::string text = allowed_text(key.parameter);
  return key.other_form.empty() ? text : text + " or " + key.other_form;
}

std::span<const StrategyKind> strategy_kinds() {
  static const StrategyKind::Range one{};
  static const StrategyKind::Range two_or_more{.fallback = 2, .minimum = 2, .maximum = 1024};
  static const StrategyKind::Range micro_batches{.fallback = 4, .minimum = 1, .maximum = 65536};
  static const std::array<StrategyKind, 6> rows{{
      {.name = "single",
       .about = "one rank, the whole batch: the baseline",
       .replicas = one,
       .stages = one,
       .micro_batches = one,
       .schedule = ""},
      {.name = "ddp",
       .about = "data parallel: each replica takes its part of the batch, gradients are summed over all",
       .replicas = two_or_more,
       .stages = one,
       .micro_batches = one,
       .schedule = ""},
      {.name = "mp",
       .about = "layer-wise model parallel: consecutive layers on each stage, one stage at work at a time",
       .replicas = one,
       .stages = two_or_more,
       .micro_batches = one,
       .schedule = ""},
      {.name = "pipeline",
       .about = "as mp, but the batch goes in micro-batches, so that stages work at the same time",
       .replicas = one,
       .stages = two_or_more,
       .micro_batches = micro_batches,
       .schedule = "1f1b"},
      {.name = "mp-ddp",
       .about = "replicas of pipelines: each stage's gradients are summed over its replicas",
       .replicas = two_or_more,
       .stages = two_or_more,
       .micro_batches = micro_batches,
       .schedule = "1f1b"},
      {.name = "independent",
       .about = "what single does, several times at once, none waiting for another: the machine's own limit, "
                "drawn beside speed-up",
       .replicas = two_or_more,
       .stages = one,
       .micro_batches = one,
       .schedule = ""},
  }};
  return rows;
}

const StrategyKind& foreign_kind() {
  static const StrategyKind kind{
      .name = "foreign",
      .about = "a program of yours: `command` is its command line, `replicas` the number of its processes",
      .replicas = {.fallback = 1, .minimum = 1, .maximum = 1024},
      .stages = {},
      .micro_batches = {},
      .schedule = ""};
  return kind;
}

std::vector<std::string> strategy_names() {
  std::vector<std::string> names;
  for (const StrategyKind& kind : strategy_kinds()) names.push_back(kind.name);
  return names;
}

}  // namespace trainyard::experiments
