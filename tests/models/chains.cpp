#include "tests/models/chains.h"

namespace trainyard::tests {

models::Hyperparameters defaults(const models::Model& model) {
  models::Hyperparameters values;
  for (const auto& parameter : model.hyperparameters) values[parameter.name] = parameter.fallback.value();
  return values;
}

std::vector<models::Node> layers_of(const std::string& model, const models::InputShape& input,
                                    const models::Hyperparameters& changed) {
  const models::Model& row = models::find_model(model);
  models::Hyperparameters values = defaults(row);
  for (const auto& [name, value] : changed) values[name] = value;
  return row.graph(values, input).nodes;
}

Totals totals(const std::vector<models::Node>& layers) {
  Totals sum;
  for (const models::Node& layer : layers) {
    sum.parameters += layer.parameters;
    sum.forward_flops += layer.forward_flops;
  }
  return sum;
}

std::string kinds(const std::vector<models::Node>& layers) {
  std::string text;
  for (const models::Node& layer : layers) text += (text.empty() ? "" : " ") + layer.path + ":" + layer.kind;
  return text;
}

}  // namespace trainyard::tests
