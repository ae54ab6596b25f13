#include "models/catalogue.h"

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

std::span<const Model> catalogue() {
  static const std::array rows{vgg11(), nbow(), seq2seq(), conv_autoencoder(), cnn(), mlp()};
  return rows;
}

std::vector<std::string> model_names() {
  std::vector<std::string> names;
  for (const Model& model : catalogue()) names.push_back(model.name);
  return names;
}

const Model& find_model(std::string_view name) {
  return named_row(catalogue(), &Model::name, "model", name);
}

}  // namespace trainyard::models
