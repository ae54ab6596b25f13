// The tasks, one row each: what a network reads and gives, and what that is compared with. `list`, experiment
// files, exported networks and the export in Python read these rows. The loss and the counts of a task are a
// row in runner/data/task.cpp, its metrics are rows in models/metrics.h. No LibTorch.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/samples/samples.h"

namespace trainyard::models {

// `translation`: the second text of a pair. `next_token`: the same text, one token later.
enum class Target { label, input, translation, next_token };

struct Task {
  std::string_view name{};
  DataKind data = DataKind::images;   // that it reads
  std::optional<DataKind> or_data{};  // or this kind, if the input has its type
  Target target = Target::label;
  std::string_view role = "logits";  // of the network's output
  // The sizes of the output, by name, or as numbers. The data has as many `classes`, and at most a `vocabulary`
  // of tokens. `length` is that of the first input, `steps` that of the last. Empty: the sizes of the input.
  std::array<std::string_view, 3> output{};
  bool has_chance_level = false;  // logits that are all equal have the loss ln(classes)
};

inline constexpr std::array all_tasks{
    Task{.name = "classification",
         .or_data = DataKind::texts,
         .output = {"batch", "classes"},
         .has_chance_level = true},
    Task{.name = "regression", .data = DataKind::rows, .role = "values", .output = {"batch", "1"}},
    Task{.name = "reconstruction", .target = Target::input, .role = "image"},
    Task{.name = "translation",
         .data = DataKind::text_pairs,
         .target = Target::translation,
         .output = {"batch", "steps", "vocabulary"}},
    Task{.name = "language-model",
         .data = DataKind::windows,
         .target = Target::next_token,
         .output = {"batch", "length", "vocabulary"}}};
// The task of an exported network that brings its own loss, unless its targets are labels. Its row is made from
// that of the data.
inline constexpr std::string_view own_loss_task = "own-loss";

// The loss that an exported network brings. It has values of samples, or none if the network brings no loss.
struct OwnLoss {
  // What a step minimises: "mean" or "sum" of the values, or "weighted": their sum over that of their weights.
  std::string reduction = {};
  std::vector<std::string> parts = {};  // names of further values that are recorded

  explicit operator bool() const { return !reduction.empty(); }
  bool is_sum() const { return reduction == "sum"; }
  bool is_weighted() const { return reduction == "weighted"; }
  // Number of outputs of the network: its own, the values, their weights and the parts.
  std::size_t outputs() const { return 2 + (is_weighted() ? 1 : 0) + parts.size(); }
};
inline constexpr std::size_t most_loss_parts = 3;

std::vector<std::string> task_names();
const Task& find_task(std::string_view name);  // UserError if there is no such task
bool has_chance_level(std::string_view name);  // false for other names

std::string_view target_name(Target target);  // "label", "input", "translation" or "next token"
// "floating-point images [batch, channels, height, width], or int64 tokens [batch, length]".
std::string reads_text(const Task& task);
// "logits [batch, classes]".
std::string gives_text(const Task& task);
// The sizes in its row: {"batch", "classes"}.
std::vector<std::string> output_sizes(const Task& task);

}  // namespace trainyard::models
