// The table of keys, and behaviour that follows from its rows.
#include "experiments/run/keys.h"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "tests/experiments/run/example_runs.h"

using namespace trainyard;
using namespace trainyard::experiments;

static const Key& key_named(const std::string& name) {
  for (const Key& key : keys())
    if (key.parameter.name == name) return key;
  FAIL("no key " << name);
  return keys().front();
}

// A value of the key's type that is not the default.
static Value another(const Key& key) {
  switch (key.parameter.type) {
    case ValueType::number:
      return 0.375;
    case ValueType::text:
      return key.parameter.choices.empty() ? std::string("other") : key.parameter.choices.back();
    case ValueType::numbers:
      return std::vector<double>{0.5, 0.25, 0.25};
    default:
      return std::int64_t{7};
  }
}

TEST_CASE("a key without its own default has the value of a new run") {
  CHECK(key_named("epochs").parameter.fallback == Value(std::int64_t{10}));
  CHECK(key_named("clip_norm").parameter.fallback == Value(0.0));
  CHECK(key_named("sampler").parameter.fallback == Value(std::string("exact")));
  CHECK(key_named("data_split").parameter.fallback == Value(std::vector<double>{0.8, 0.1, 0.1}));
  CHECK(key_named("save").parameter.fallback == Value(std::string("none")));
  CHECK_FALSE(key_named("threads").parameter.fallback);
  CHECK(default_text(key_named("threads").parameter) == "as many as the rank has cores");
}

TEST_CASE("the value of every key can be read, set and stored in JSON") {
  for (const Key& key : keys()) {
    CAPTURE(key.parameter.name);
    if (std::holds_alternative<std::monostate>(key.member)) {
      CHECK_FALSE(value_of(key, cnn_ddp()));
      continue;
    }
    Run run = mlp_single();
    set_value(key, run, another(key));
    CHECK(value_of(key, run) == another(key));
    CHECK(value_of(key, run) != value_of(key, Run{}));
    CHECK(run_from_json(to_json(run)) == run);
  }
}

TEST_CASE("a member that older JSON does not have gets the value of a new run") {
  const Run run = vgg11_hybrid();
  for (const Key& key : keys()) {
    CAPTURE(key.parameter.name);
    if (key.original || std::holds_alternative<std::monostate>(key.member)) continue;
    nlohmann::json older = to_json(run);
    const std::string part(part_name(key));
    (part.empty() ? older : older.at(part)).erase(key.json.empty() ? key.parameter.name : key.json);
    CHECK(value_of(key, run_from_json(older)) == value_of(key, Run{}));
  }
}

TEST_CASE("a key that was added later is in the run key unless it has its default") {
  Run run = mlp_single();
  const Key& clipping = key_named("clip_norm");
  CHECK_FALSE(is_in_run_key(clipping, run));
  set_value(clipping, run, 1.0);
  CHECK(is_in_run_key(clipping, run));
  CHECK(is_in_run_key(key_named("epochs"), run));
  CHECK(is_in_run_key(key_named("momentum"), run));
  CHECK_FALSE(is_in_run_key(key_named("momentum"), cnn_ddp()));  // adam has no momentum
  set_value(key_named("save"), run, std::string("best"));
  CHECK_FALSE(is_in_run_key(key_named("save"), run));
}

TEST_CASE("a member of a part of the run is in that part's JSON object") {
  CHECK(part_name(key_named("epochs")) == "");
  CHECK(part_name(key_named("clip_norm")) == "optimizer");
  CHECK(part_name(key_named("stages")) == "strategy");
  CHECK(part_name(key_named("image_size")) == "data");
  CHECK(to_json(vgg11_hybrid()).at("optimizer").at("clip_norm") == 1);
}

TEST_CASE("a key of the mesh has a default for each kind of strategy") {
  CHECK(default_text(key_named("replicas").parameter) ==
        "ddp, mp-ddp, parameter-server, zero, independent, in-step 2; others 1");
  CHECK(default_text(key_named("stages").parameter) == "mp, pipeline, mp-ddp 2; others 1");
  CHECK(default_text(key_named("micro_batches").parameter) == "pipeline, mp-ddp, tensor 4; others 1");
  CHECK(default_text(key_named("tensor").parameter) == "tensor 2; others 1");
}

TEST_CASE("replicas share a batch unless they are independent") {
  CHECK(is_independent("independent"));
  CHECK_FALSE(is_independent("ddp"));
  CHECK_FALSE(is_independent("foreign"));
  Run run = cnn_ddp();
  CHECK(run.strategy.sharing_replicas() == 2);
  run.strategy.kind = "independent";
  CHECK(run.strategy.sharing_replicas() == 1);
  CHECK_THROWS_WITH_AS(find_strategy("dpp"), "there is no strategy \"dpp\"; did you mean \"ddp\"?",
                       UserError);
}
