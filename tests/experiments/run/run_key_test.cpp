// Run keys and their canonical text.
#include <limits>
#include <set>

#include <doctest/doctest.h>

#include "base/error.h"
#include "tests/experiments/run/example_runs.h"
#include "tests/support/contains.h"

using namespace trainyard;
using namespace trainyard::experiments;

// Written by hand from the definition. The keys are the first 12 digits of `printf '%s' TEXT | sha256sum`.
// They must never change, because finished runs would be trained again.
TEST_CASE("frozen keys: canonical work has the same text and SHA-256 as ever") {
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
  mixed.precision = "float16";
  CHECK(run_key(mixed) == "f05081a4df87");
  mixed.precision = "tf32";
  CHECK(run_key(mixed) == "47716fed8037");
}

TEST_CASE("frozen keys: every field that was added with stages") {
  CHECK(
      canonical_work(vgg11_hybrid()) ==
      R"({"key_version":1,"work":{"augmentation":"flip-crop","batch":{"per":"replica","size":64},"batch_norm":"sync","data":{"fingerprint":"feed","source":"cifar10","split":[0.8,0.1,0.1],"split_seed":0},"epochs":10,"gradient_accumulation":2,"hyperparameters":{"head":"compact"},"model":"vgg11","optimizer":{"clip_norm":1,"kind":"adamw","learning_rate":0.001,"learning_rate_scaling":"linear","schedule":"step","schedule_epochs":4,"schedule_factor":0.5,"weight_decay":0.01},"sampler":"distributed","seed":3,"strategy":{"boundaries":[7,21],"kind":"mp-ddp","micro_batches":4,"replicas":2,"schedule":"1f1b","stages":3}}})");
  CHECK(run_key(vgg11_hybrid()) == "6fe191bb8dd2");
}

TEST_CASE("frozen keys: an exported network, and its first weights only if they are those of a file") {
  Run run = mlp_single();
  run.exported = {.path = "/home/me/net.pt2", .sha256 = "beef"};
  run.declared = {.model_title = "Net", .task = "classification", .dataset_title = {}};
  const std::string part = R"("exported":{"initial":"exported","sha256":"beef","task":"classification"})";
  CHECK_MESSAGE(contains(canonical_work(run), part), canonical_work(run));
  CHECK(run_key(run) == "b42d6878bb05");
  CHECK_FALSE(to_json(run)["exported"].contains("weights"));
  run.exported->initial = "program";
  run.exported->weights = "cafe";
  CHECK(contains(
      canonical_work(run),
      R"("exported":{"initial":"program","sha256":"beef","task":"classification","weights":"cafe"})"));
  CHECK(run_from_json(to_json(run)) == run);
  const std::string key = run_key(run);
  run.exported->weights = "caff";
  CHECK(run_key(run) != key);
}

TEST_CASE("saved weights and checkpoints of a run are not part of its key") {
  Run run = mlp_single();
  run.save = "best";
  run.checkpoint = "epoch";
  CHECK(run_key(run) == run_key(mlp_single()));
}

TEST_CASE("with one replica, the batch may be global or per replica, unless the matrix varies this") {
  Run run = mlp_single();
  run.batch_per = "replica";
  CHECK(run_key(run) == run_key(mlp_single()));
  run.axes["batch"] = std::string("128 per replica");
  CHECK(run_key(run) != run_key(mlp_single()));
}

TEST_CASE("threads are part of the key only if the matrix varies them") {
  Run run = mlp_single();
  run.threads = 2;
  CHECK(run_key(run) == "8b809ffba02c");
  run.axes["threads"] = std::int64_t{2};
  CHECK(run_key(run) == "14a86b5b055d");
}

TEST_CASE("the key does not depend on paths, on names of strategies and data sets, or on the order of axes") {
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

TEST_CASE("every value that changes the result changes the key") {
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

TEST_CASE("a run with an infinite value has no key") {
  Run run = mlp_single();
  run.optimizer.learning_rate = std::numeric_limits<double>::infinity();
  CHECK_THROWS_AS(run_key(run), InternalError);
}

TEST_CASE("the key says how parts of a batch of texts are padded, only for exported networks") {
  Run run = mlp_single();
  run.data.dataset = run.data.source = "imdb";
  run.exported = {"/net.pt2", "beef", "exported"};
  run.declared.task = "classification";
  const auto says = [](const Run& each) {
    return canonical_work(each).find(R"("padded":"step")") != std::string::npos;
  };
  CHECK_FALSE(says(run));
  run.strategy.micro_batches = 2;
  CHECK(says(run));
  run.data.source = "mnist";
  CHECK_FALSE(says(run));
  run.data.source = "imdb";
  run.exported.reset();
  CHECK_FALSE(says(run));
}

TEST_CASE("words of a text have another key than its characters, and the path of merges is in no key") {
  Run run = mlp_single();
  run.data.dataset = run.data.source = "text";
  const std::string characters = canonical_work(run);
  CHECK(characters.find("tokens") == std::string::npos);
  run.data.tokens = "words";
  CHECK(canonical_work(run).find(R"("tokens":"words")") != std::string::npos);
  CHECK(canonical_work(run).find(R"("vocabulary_max_size":20000)") != std::string::npos);
  run.data.tokens = "bpe";
  run.data.bpe_file = "/a/merges.txt";
  CHECK(canonical_work(run).find("merges") == std::string::npos);
  CHECK(run_from_json(to_json(run)) == run);
}

TEST_CASE("images that are scaled have another key") {
  Run run = mlp_single();
  run.data.image_size = 64;
  CHECK(canonical_work(run).find(R"("image_size":64)") != std::string::npos);
  CHECK(run_from_json(to_json(run)) == run);
}
