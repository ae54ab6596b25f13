#include "tests/models/chains.h"

namespace trainyard::tests {

models::Hyperparameters defaults(const models::Model& model) {
  models::Hyperparameters values;
  for (const auto& parameter : model.hyperparameters) values[parameter.name] = parameter.fallback.value();
  return values;
}

std::vector<models::Layer> layers_of(const std::string& model, const models::InputShape& input,
                                     const models::Hyperparameters& changed) {
  const models::Model& row = models::find_model(model);
  models::Hyperparameters values = defaults(row);
  for (const auto& [name, value] : changed) values[name] = value;
  return row.layers(values, input);
}

Totals totals(const std::vector<models::Layer>& layers) {
  Totals sum;
  for (const models::Layer& layer : layers) {
    sum.parameters += layer.parameters;
    sum.forward_flops += layer.forward_flops;
  }
  return sum;
}

std::string kinds(const std::vector<models::Layer>& layers) {
  std::string text;
  for (const models::Layer& layer : layers) text += (text.empty() ? "" : " ") + layer.path + ":" + layer.kind;
  return text;
}

}  // namespace trainyard::tests
