// Runs as values: JSON, labels, resolved values.
#include "experiments/run/run.h"

#include <set>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "tests/experiments/run/example_runs.h"

using namespace trainyard;
using namespace trainyard::experiments;

TEST_CASE("a learning rate is scaled by the growth of the batch through replicas") {
  Run run = mlp_single();
  run.strategy.replicas = 4;
  run.batch_per = "replica";
  run.global_batch = 4 * run.batch_size;
  run.optimizer.learning_rate = 0.1;
  CHECK(effective_learning_rate(run) == 0.1);
  run.learning_rate_scaling = "linear";
  CHECK(effective_learning_rate(run) == 0.4);
  run.learning_rate_scaling = "sqrt";
  CHECK(effective_learning_rate(run) == 0.2);
}

TEST_CASE("a run survives its JSON, also as text") {
  for (const Run& run : {mlp_single(), cnn_ddp(), vgg11_hybrid(), Run{}}) {
    CHECK(run_from_json(to_json(run)) == run);
    CHECK(run_from_json(nlohmann::json::parse(to_json(run).dump())) == run);
  }
}

TEST_CASE("the members of a run's JSON are in alphabetical order") {
  const std::string text = to_json(mlp_single()).dump();
  std::size_t last = 0;
  for (const char* name : {"augmentation", "axes", "batch_norm", "data", "epochs", "global_batch",
                           "hyperparameters", "model", "optimizer", "seed", "strategy", "threads"}) {
    const std::size_t place = text.find(std::string("\"") + name + "\":", last);
    REQUIRE(place != std::string::npos);
    last = place;
  }
}

TEST_CASE("run JSON with a missing member, or one of a wrong type, is an internal error") {
  const nlohmann::json whole = to_json(cnn_ddp());
  const std::set<std::string> later{"augmentation", "batch_norm",
                                    "batch_per",    "batch_size",
                                    "checkpoint",   "gradient_accumulation",
                                    "initial",      "learning_rate_scaling",
                                    "precision",    "sampler",
                                    "save",         "steps_per_epoch"};
  for (const auto& [name, ignored] : whole.items()) {
    CAPTURE(name);
    nlohmann::json lacking = whole;
    lacking.erase(name);
    if (!later.contains(name)) CHECK_THROWS_AS(run_from_json(lacking), InternalError);
    nlohmann::json wrong = whole;
    wrong[name] = nlohmann::json::array({nlohmann::json::object()});
    CHECK_THROWS_AS(run_from_json(wrong), InternalError);
  }
}

TEST_CASE("values of every type survive their JSON") {
  const std::vector<Value> values{true,
                                  std::int64_t{-3},
                                  2.0,
                                  0.1,
                                  std::string("a\"b"),
                                  std::vector<std::int64_t>{1, 2},
                                  std::vector<double>{1.0, 0.5},
                                  std::vector<std::int64_t>{}};
  for (const Value& value : values)
    CHECK(value_from_json(nlohmann::json::parse(to_json(value).dump())) == value);
  CHECK_THROWS_AS(value_from_json(nlohmann::json::parse("9223372036854775808")), InternalError);
  CHECK_THROWS_AS(value_from_json(nlohmann::json::parse("[1, 9223372036854775808]")), InternalError);
  CHECK_THROWS_AS(value_from_json(nlohmann::json::parse("[\"a\"]")), InternalError);
  CHECK_THROWS_AS(value_from_json(nlohmann::json()), InternalError);
}

TEST_CASE("a label has model, strategy and seed, then every other axis") {
  CHECK(label(mlp_single()) == "mlp single seed 3");
  CHECK(label(cnn_ddp()) == "cnn ddp seed 0 batch=64 hidden=[128] optimizer=adam weight_decay=1e-4");
}

TEST_CASE("every resolved value has a name") {
  const auto values = values_by_name(cnn_ddp());
  CHECK(values.at("model") == Value(std::string("cnn")));
  CHECK(values.at("strategy") == Value(std::string("ddp")));
  CHECK(values.at("dataset") == Value(std::string("mnist")));
  CHECK(values.at("replicas") == Value(std::int64_t{2}));
  CHECK(values.at("channels") == Value(std::vector<std::int64_t>{16, 32}));
  CHECK(values.at("data_split") == Value(std::vector<double>{0.6, 0.2, 0.2}));
  CHECK(values.at("train_samples") == Value(std::int64_t{2000}));
  CHECK(values.at("threads") == Value(std::int64_t{2}));
  CHECK(values.at("learning_rate") == Value(0.001));
  CHECK(values.count("momentum") == 0);  // adam has no momentum
  CHECK(values_by_name(mlp_single()).count("train_samples") == 0);
}
