#include "models/catalogue.h"

#include <algorithm>
#include <array>

#include "models/error.h"
#include "models/nearest_name.h"

namespace trainyard::models {

// Each in the folder of its name.
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
  const auto rows = catalogue();
  const auto found =
      std::find_if(rows.begin(), rows.end(), [&](const Model& row) { return row.name == name; });
  if (found != rows.end()) return *found;
  throw UserError("there is no model \"" + std::string(name) + "\"", name_advice(name, model_names()));
}

}  // namespace trainyard::models
