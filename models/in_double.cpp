#include "models/in_double.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace trainyard::models {

namespace {

Argument in_double(Argument argument) {
  if (auto* dtype = std::get_if<Dtype>(&argument.value); dtype && *dtype == Dtype::float32)
    *dtype = Dtype::float64;
  if (auto* list = std::get_if<Argument::List>(&argument.value))
    std::ranges::transform(*list, list->begin(), [](Argument& each) { return in_double(std::move(each)); });
  return argument;
}

// Storages of float32 as float64, by the storage: tied tensors share theirs, also those of both graphs.
using Storages = std::map<const std::string*, std::shared_ptr<const std::string>>;

Graph in_double(Graph graph, Storages& converted) {
  for (Node& node : graph.nodes)
    std::ranges::transform(node.arguments, node.arguments.begin(),
                           [](Argument& argument) { return in_double(std::move(argument)); });
  for (StoredTensor& tensor : graph.tensors) {
    if (tensor.dtype != Dtype::float32) continue;
    tensor.dtype = Dtype::float64;
    auto& storage = converted[tensor.storage.get()];
    if (storage == nullptr) {
      std::vector<float> from(tensor.storage->size() / sizeof(float));
      std::memcpy(from.data(), tensor.storage->data(), from.size() * sizeof(float));
      const std::vector<double> to(from.begin(), from.end());
      storage = std::make_shared<const std::string>(reinterpret_cast<const char*>(to.data()),
                                                    to.size() * sizeof(double));
    }
    tensor.storage = storage;
  }
  if (graph.evaluation)
    graph.evaluation = std::make_shared<const Graph>(in_double(*graph.evaluation, converted));
  return graph;
}

}  // namespace

Graph in_double(Graph graph) {
  Storages converted;
  return in_double(std::move(graph), converted);
}

}  // namespace trainyard::models
