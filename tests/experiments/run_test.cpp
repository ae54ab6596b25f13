// Runs as values: JSON, canonical work, keys, labels.
#include "experiments/run.h"

#include <cmath>
#include <limits>
#include <set>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "models/error.h"

using namespace trainyard;
using namespace trainyard::experiments;

namespace {

Run mlp_single() {
  Run run;
  run.model = "mlp";
  run.hyperparameters = {{"hidden", std::vector<std::int64_t>{250, 100}}};
  run.data.dataset = "mnist";
  run.data.source = "mnist";
  run.data.folder = "/data/mnist";
  run.data.fingerprint = "f00d";
  run.seed = 3;
  run.axes = {{"model", std::string("mlp")}, {"strategy", std::string("single")}, {"seed", std::int64_t{3}}};
  return run;
}

Run cnn_ddp() {
  Run run;
  run.model = "cnn";
  run.hyperparameters = {{"hidden", std::vector<std::int64_t>{128}},
                         {"channels", std::vector<std::int64_t>{16, 32}}};
  run.data = {.dataset = "mnist",
              .source = "synthetic-digits",
              .folder = {},
              .fingerprint = "c0ffee",
              .split_seed = 18446744073709551615u,
              .split = {0.6, 0.2, 0.2},
              .train_samples = 2000,
              .input = {}};
  run.strategy = {.name = "ddp", .kind = "ddp", .replicas = 2, .stages = 1};
  run.optimizer = {
      .kind = "adam", .learning_rate = 0.001, .momentum = 0, .weight_decay = 1e-4, .schedule = "constant"};
  run.epochs = 4;
  run.global_batch = 64;
  run.threads = 2;
  run.axes = {{"model", std::string("cnn")},
              {"batch", std::int64_t{64}},
              {"weight_decay", 1e-4},
              {"optimizer", std::string("adam")},
              {"hidden", std::vector<std::int64_t>{128}}};
  return run;
}

Run vgg11_hybrid() {
  Run run = mlp_single();
  run.model = "vgg11";
  run.hyperparameters = {{"head", std::string("compact")}};
  run.data.dataset = run.data.source = "cifar10";
  run.data.fingerprint = "feed";
  run.data.input = {.image = {.channels = 3, .height = 32, .width = 32}, .classes = 10};
  run.strategy = {.name = "hybrid",
                  .kind = "mp-ddp",
                  .replicas = 2,
                  .stages = 3,
                  .schedule = "1f1b",
                  .micro_batches = 4,
                  .boundaries = {7, 21}};
  run.optimizer = {.kind = "adamw",
                   .learning_rate = 0.001,
                   .momentum = 0,
                   .weight_decay = 0.01,
                   .schedule = "step",
                   .schedule_epochs = 4,
                   .schedule_factor = 0.5,
                   .clip_norm = 1};
  run.batch_size = 64;
  run.batch_per = "replica";
  run.global_batch = 128;
  run.gradient_accumulation = 2;
  run.sampler = "distributed";
  run.learning_rate_scaling = "linear";
  run.augmentation = "flip-crop";
  run.batch_norm = "sync";
  run.save = "best";
  run.checkpoint = "epoch";
  return run;
}

}  // namespace

// Written by hand from the definition; the keys are `printf '%s' TEXT | sha256sum`, first 12 digits. They
// must never change: finished runs would be trained again.
TEST_CASE("frozen keys: canonical work is the same text and has the same SHA-256 as ever") {
  CHECK(
      canonical_work(mlp_single()) ==
      R"({"key_version":1,"work":{"batch":{"per":"global","size":128},"data":{"fingerprint":"f00d","source":"mnist","split":[0.8,0.1,0.1],"split_seed":0},"epochs":10,"hyperparameters":{"hidden":[250,100]},"model":"mlp","optimizer":{"kind":"sgd","learning_rate":0.05,"momentum":0.9,"schedule":"constant","weight_decay":0},"seed":3,"strategy":{"kind":"single","replicas":1,"stages":1}}})");
  CHECK(run_key(mlp_single()) == "8b809ffba02c");
  CHECK(
      canonical_work(cnn_ddp()) ==
      R"({"key_version":1,"work":{"batch":{"per":"global","size":64},"data":{"fingerprint":"c0ffee","source":"synthetic-digits","split":[0.6,0.2,0.2],"split_seed":18446744073709551615,"train_samples":2000},"epochs":4,"hyperparameters":{"channels":[16,32],"hidden":[128]},"model":"cnn","optimizer":{"kind":"adam","learning_rate":0.001,"schedule":"constant","weight_decay":1e-04},"seed":0,"strategy":{"kind":"ddp","replicas":2,"stages":1}}})");
  CHECK(run_key(cnn_ddp()) == "58434bd3bd8c");
}

TEST_CASE("frozen keys: the precision is part of the work unless it is float32") {
  Run mixed = mlp_single();
  mixed.precision = "bfloat16";
  CHECK(
      canonical_work(mixed) ==
      R"({"key_version":1,"work":{"batch":{"per":"global","size":128},"data":{"fingerprint":"f00d","source":"mnist","split":[0.8,0.1,0.1],"split_seed":0},"epochs":10,"hyperparameters":{"hidden":[250,100]},"model":"mlp","optimizer":{"kind":"sgd","learning_rate":0.05,"momentum":0.9,"schedule":"constant","weight_decay":0},"precision":"bfloat16","seed":3,"strategy":{"kind":"single","replicas":1,"stages":1}}})");
  CHECK(run_key(mixed) == "2847495f9a17");
  CHECK(run_from_json(to_json(mixed)) == mixed);
}

TEST_CASE("frozen keys: every field that was added with stages") {
  CHECK(
      canonical_work(vgg11_hybrid()) ==
      R"({"key_version":1,"work":{"augmentation":"flip-crop","batch":{"per":"replica","size":64},"batch_norm":"sync","data":{"fingerprint":"feed","source":"cifar10","split":[0.8,0.1,0.1],"split_seed":0},"epochs":10,"gradient_accumulation":2,"hyperparameters":{"head":"compact"},"model":"vgg11","optimizer":{"clip_norm":1,"kind":"adamw","learning_rate":0.001,"learning_rate_scaling":"linear","schedule":"step","schedule_epochs":4,"schedule_factor":0.5,"weight_decay":0.01},"sampler":"distributed","seed":3,"strategy":{"boundaries":[7,21],"kind":"mp-ddp","micro_batches":4,"replicas":2,"schedule":"1f1b","stages":3}}})");
  CHECK(run_key(vgg11_hybrid()) == "6fe191bb8dd2");
}

TEST_CASE("a run.json of before strategies had stages is read, and has the key it had") {
  const Run run = run_from_json(nlohmann::json::parse(
      R"({"axes":{"seed":3},"data":{"dataset":"mnist","fingerprint":"f00d","folder":"/data/mnist","source":"mnist","split":[0.8,0.1,0.1],"split_seed":0,"train_samples":null},"epochs":10,"global_batch":96,"hyperparameters":{"hidden":[250,100]},"model":"mlp","optimizer":{"kind":"sgd","learning_rate":0.05,"momentum":0.9,"schedule":"constant","weight_decay":0.0},"seed":3,"strategy":{"kind":"ddp","name":"ddp","replicas":2,"stages":1},"threads":null})"));
  CHECK(run.batch_size == 96);
  CHECK(run.batch_per == "global");
  CHECK(run.sampler == "exact");
  CHECK(run.strategy.micro_batches == 1);
  CHECK(run_key(run) == "9a45168a4959");
}

TEST_CASE("what is kept of a run beside its records is no part of its key") {
  Run run = mlp_single();
  run.save = "best";
  run.checkpoint = "epoch";
  CHECK(run_key(run) == run_key(mlp_single()));
}

TEST_CASE("one replica does the same work whoever the batch is given for, unless the matrix asks for both") {
  Run run = mlp_single();
  run.batch_per = "replica";
  CHECK(run_key(run) == run_key(mlp_single()));
  run.axes["batch"] = std::string("128 per replica");
  CHECK(run_key(run) != run_key(mlp_single()));
}

TEST_CASE("a learning rate is scaled with what the replicas add to the batch") {
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

TEST_CASE("threads are part of the key only where the matrix varies them") {
  Run run = mlp_single();
  run.threads = 2;
  CHECK(run_key(run) == "8b809ffba02c");
  run.axes["threads"] = std::int64_t{2};
  CHECK(run_key(run) == "14a86b5b055d");
}

TEST_CASE(
    "paths, names of strategies and data sets, axes and the order they came in leave the key as it is") {
  const std::string key = run_key(mlp_single());
  Run run = mlp_single();
  run.data.folder = "/elsewhere";
  run.data.dataset = "digits of another name";
  run.strategy.name = "mine";
  run.axes = {{"batch", std::int64_t{128}}};
  CHECK(run_key(run) == key);
  run.optimizer.weight_decay = -0.0;
  CHECK(run_key(run) == key);
}

TEST_CASE("whatever changes the result changes the key") {
  const Run base = mlp_single();
  const std::vector<void (*)(Run&)> changes{
      [](Run& run) { run.model = "cnn"; },
      [](Run& run) {
        run.hyperparameters["hidden"] = std::vector<std::int64_t>{100, 250};
      },
      [](Run& run) { run.data.source = "synthetic-digits"; },
      [](Run& run) { run.data.fingerprint = "f00e"; },
      [](Run& run) { run.data.split_seed = 1; },
      [](Run& run) {
        run.data.split = {0.7, 0.2, 0.1};
      },
      [](Run& run) { run.data.train_samples = 100; },
      [](Run& run) { run.strategy.kind = "ddp"; },
      [](Run& run) { run.strategy.replicas = 2; },
      [](Run& run) { run.strategy.stages = 2; },
      [](Run& run) { run.optimizer.kind = "adam"; },
      [](Run& run) { run.optimizer.learning_rate = std::nextafter(0.05, 1.0); },
      [](Run& run) { run.optimizer.momentum = 0; },
      [](Run& run) { run.optimizer.weight_decay = 1e-300; },
      [](Run& run) { run.optimizer.schedule = "step"; },
      [](Run& run) { run.optimizer.schedule = "cosine"; },
      [](Run& run) { run.optimizer.clip_norm = 1; },
      [](Run& run) { run.strategy.micro_batches = 2; },
      [](Run& run) { run.strategy.schedule = "gpipe"; },
      [](Run& run) { run.strategy.boundaries = {1}; },
      [](Run& run) { run.gradient_accumulation = 2; },
      [](Run& run) {
        run.sampler = "distributed";
        run.strategy.replicas = 3;
      },
      [](Run& run) { run.augmentation = "flip"; },
      [](Run& run) { run.batch_norm = "sync"; },
      [](Run& run) { run.epochs = 11; },
      [](Run& run) { run.global_batch = 127; },
      [](Run& run) { run.seed = 4; },
  };
  std::set<std::string> keys{run_key(base)};
  for (const auto change : changes) {
    Run run = base;
    change(run);
    CHECK(keys.insert(run_key(run)).second);
  }
}

TEST_CASE("a run that holds an infinity has no key") {
  Run run = mlp_single();
  run.optimizer.learning_rate = std::numeric_limits<double>::infinity();
  CHECK_THROWS_AS(run_key(run), InternalError);
}

TEST_CASE("a run comes back from its JSON as it was, also through text") {
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

TEST_CASE("JSON that lacks a member of a run, or has another type there, is an internal error that says so") {
  const nlohmann::json whole = to_json(cnn_ddp());
  const std::set<std::string> later{
      "augmentation",          "batch_norm", "batch_per", "batch_size", "checkpoint", "gradient_accumulation",
      "learning_rate_scaling", "precision",  "sampler",   "save"};
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

TEST_CASE("values of every type come back from JSON") {
  const std::vector<models::Value> values{true,
                                          std::int64_t{-3},
                                          2.0,
                                          0.1,
                                          std::string("a\"b"),
                                          std::vector<std::int64_t>{1, 2},
                                          std::vector<double>{1.0, 0.5},
                                          std::vector<std::int64_t>{}};
  for (const models::Value& value : values)
    CHECK(value_from_json(nlohmann::json::parse(to_json(value).dump())) == value);
  CHECK_THROWS_AS(value_from_json(nlohmann::json::parse("9223372036854775808")), InternalError);
  CHECK_THROWS_AS(value_from_json(nlohmann::json::parse("[\"a\"]")), InternalError);
  CHECK_THROWS_AS(value_from_json(nlohmann::json()), InternalError);
}

TEST_CASE("a label names model, strategy and seed, then every further axis") {
  CHECK(label(mlp_single()) == "mlp single seed 3");
  CHECK(label(cnn_ddp()) == "cnn ddp seed 0 batch=64 hidden=[128] optimizer=adam weight_decay=1e-4");
}

TEST_CASE("every resolved value has its name") {
  const auto values = values_by_name(cnn_ddp());
  CHECK(values.at("model") == models::Value(std::string("cnn")));
  CHECK(values.at("strategy") == models::Value(std::string("ddp")));
  CHECK(values.at("dataset") == models::Value(std::string("mnist")));
  CHECK(values.at("replicas") == models::Value(std::int64_t{2}));
  CHECK(values.at("channels") == models::Value(std::vector<std::int64_t>{16, 32}));
  CHECK(values.at("data_split") == models::Value(std::vector<double>{0.6, 0.2, 0.2}));
  CHECK(values.at("train_samples") == models::Value(std::int64_t{2000}));
  CHECK(values.at("threads") == models::Value(std::int64_t{2}));
  CHECK(values.at("learning_rate") == models::Value(0.001));
  CHECK(values.count("momentum") == 0);  // adam has none
  CHECK(values_by_name(mlp_single()).count("train_samples") == 0);
}
