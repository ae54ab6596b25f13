#include "models/catalogue.h"

#include <algorithm>
#include <array>

#include "base/named_row.h"

namespace trainyard::models {

// Each function is in the folder with its name.
Model vgg11();
Model nbow();
Model seq2seq();
Model conv_autoencoder();
Model cnn();
Model mlp();
Model mobilenet_v2();
Model gpt();

std::span<const Model> catalogue() {
  static const std::array rows{vgg11(), nbow(), seq2seq(),      conv_autoencoder(),
                               cnn(),   mlp(),  mobilenet_v2(), gpt()};
  return rows;
}

namespace {

constexpr const char* number_task = "regression";

bool has_rows(std::string_view dataset) {
  const Dataset* row = row_or_null(datasets(), &Dataset::name, dataset);
  return row != nullptr && row->kind == DataKind::rows;
}

}  // namespace

std::vector<std::string> tasks_of(const Model& model) {
  std::vector<std::string> tasks{model.task};
  if (model.file.empty() && std::ranges::any_of(model.datasets, has_rows)) tasks.emplace_back(number_task);
  return tasks;
}

std::string task_of(const Model& model, const DataChoice& data) {
  return has_rows(data.dataset) && data.target_kind == "number" ? number_task : model.task;
}

std::vector<std::string> model_names() {
  return names_of(catalogue(), &Model::name);
}

const Model& find_model(std::string_view name) {
  return named_row(catalogue(), &Model::name, "model", name);
}

}  // namespace trainyard::models
