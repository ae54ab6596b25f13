#include "runner/data/task.h"

#include <array>

#include <ATen/ATen.h>

#include "base/named_row.h"
#include "runner/data/right_answers.h"

namespace trainyard::runner {

namespace {

constexpr std::int64_t padding = 0;

at::Tensor label_loss(const at::Tensor& logits, const at::Tensor& labels) {
  return at::cross_entropy_loss(logits, labels, /*weight=*/{}, at::Reduction::Sum);
}

at::Tensor right_labels(const at::Tensor& logits, const at::Tensor& labels) {
  return right_answers(logits, labels);
}

at::Tensor squared_error(const at::Tensor& images, const at::Tensor& targets) {
  return at::mse_loss(images, targets, at::Reduction::Sum);
}

at::Tensor token_loss(const at::Tensor& logits, const at::Tensor& tokens) {
  return at::cross_entropy_loss(logits.flatten(0, -2), tokens.flatten(), /*weight=*/{}, at::Reduction::Sum,
                                padding);
}

at::Tensor right_tokens(const at::Tensor& logits, const at::Tensor& tokens) {
  return right_answers(logits, tokens, padding);
}

at::Tensor token_positions(const at::Tensor& tokens) {
  return tokens.flatten().nonzero().flatten();
}

constexpr std::array tasks{
    Task{"classification", Target::label, label_loss, right_labels, nullptr},
    Task{"reconstruction", Target::input, squared_error, nullptr, nullptr},
    Task{"translation", Target::next_token, token_loss, right_tokens, token_positions}};

}  // namespace

const Task& find_task(std::string_view name) {
  return models::named_row(tasks, &Task::name, "task", name);
}

}  // namespace trainyard::runner
