#include "models/catalogue.h"

#include <set>

#include <doctest/doctest.h>

#include "base/error.h"
#include "models/metrics.h"
#include "tests/models/chains.h"
#include "tests/support/data_folder.h"

using namespace trainyard;
using namespace trainyard::models;
using namespace trainyard::tests;

TEST_CASE("every model is described, its defaults are allowed, and its data sets exist") {
  std::set<std::string> names;
  for (const Model& model : catalogue()) {
    CAPTURE(model.name);
    CHECK(names.insert(model.name).second);
    CHECK(std::set<std::string>{"classification", "reconstruction", "translation", "language-model"}.contains(
        model.task));
    REQUIRE_FALSE(records_of(model.task).empty());
    CHECK(records_of(model.task).front() == "loss");
    CHECK_FALSE(model.title.empty());
    CHECK_FALSE(model.about.empty());
    REQUIRE_FALSE(model.datasets.empty());
    for (const Parameter& parameter : model.hyperparameters) {
      CHECK_FALSE(problem_with(parameter, parameter.fallback.value()));
      CHECK_FALSE(parameter.meaning.empty());
    }
    for (const std::string& name : model.datasets) {
      const Dataset& dataset = find_dataset(name);
      const auto layers = model.graph(defaults(model), input_shape(dataset)).nodes;
      for (std::size_t i = 0; i < layers.size(); ++i) CHECK(layers[i].path == std::to_string(i));
    }
  }
  CHECK(model_names() == std::vector<std::string>{"vgg11", "nbow", "seq2seq", "conv-autoencoder", "cnn",
                                                  "mlp", "mobilenet-v2", "gpt"});
}

TEST_CASE("the error for an unknown model suggests the nearest name, or lists all models if none is near") {
  CHECK(user_error_of([] { find_model("mpl"); }) == "there is no model \"mpl\"; did you mean \"mlp\"?");
  CHECK(user_error_of([] { find_model("resnet50"); }) ==
        "there is no model \"resnet50\"; choose from vgg11, nbow, seq2seq, conv-autoencoder, cnn, mlp, "
        "mobilenet-v2, gpt");
}

TEST_CASE("a missing hyper-parameter is an internal error") {
  CHECK_THROWS_AS(find_model("mlp").graph({}, {{1, 28, 28}, 10}), trainyard::InternalError);
}
