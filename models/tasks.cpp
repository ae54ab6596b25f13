#include "models/tasks.h"

#include <fmt/format.h>

#include "base/named_row.h"
#include "base/text.h"

namespace trainyard::models {

namespace {

const char* text_of(DataKind kind) {
  constexpr std::array texts{
      "floating-point images [batch, channels, height, width]", "int64 tokens [batch, length]",
      "source and target, each int64 tokens [batch, length], with any length", "int64 tokens [batch, length]",
      "floating-point values [batch, columns]"};  // in the order of DataKind
  return texts.at(static_cast<std::size_t>(kind));
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
  constexpr std::array names{"label", "input", "translation", "next token"};  // in the order of Target
  return names.at(static_cast<std::size_t>(target));
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
  return names_of(task.output, std::identity());
}

}  // namespace trainyard::models
