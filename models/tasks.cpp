#include "models/tasks.h"

#include <fmt/format.h>

#include "base/named_row.h"
#include "base/text.h"

namespace trainyard::models {

namespace {

const char* text_of(DataKind kind) {
  switch (kind) {
    case DataKind::images:
      return "floating-point images [batch, channels, height, width]";
    case DataKind::rows:
      return "floating-point values [batch, columns]";
    case DataKind::texts:
    case DataKind::windows:
      return "int64 tokens [batch, length]";
    case DataKind::text_pairs:
      return "source and target, each int64 tokens [batch, length], with any length";
  }
  return "";
}

}  // namespace

std::vector<std::string> task_names() {
  return names_of(all_tasks, &Task::name);
}

const Task& find_task(std::string_view name) {
  return named_row(all_tasks, &Task::name, "task", name);
}

bool has_chance_level(std::string_view name) {
  const Task* task = row_or_null(all_tasks, &Task::name, name);
  return task != nullptr && task->has_chance_level;
}

std::string_view target_name(Target target) {
  switch (target) {
    case Target::label:
      return "label";
    case Target::input:
      return "input";
    case Target::translation:
      return "translation";
    case Target::next_token:
      return "next token";
  }
  return "";
}

std::string reads_text(const Task& task) {
  const std::string first = text_of(task.data);
  return task.or_data ? first + ", or " + text_of(*task.or_data) : first;
}

std::string gives_text(const Task& task) {
  const std::vector<std::string> sizes = output_sizes(task);
  return sizes.empty() ? fmt::format("{}s of the shape that it reads", task.role)
                       : fmt::format("{} [{}]", task.role, joined(sizes));
}

std::vector<std::string> output_sizes(const Task& task) {
  std::vector<std::string> sizes;
  for (const std::string_view size : task.output)
    if (!size.empty()) sizes.emplace_back(size);
  return sizes;
}

}  // namespace trainyard::models
