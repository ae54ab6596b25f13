// The parity check. Correct arms pass it, and an arm without synchronised gradients fails it.
// Training is the same with and without it.
#include "runner/parity/parity_check.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>
#include <set>
#include <sstream>

#include <ATen/ATen.h>

#include "experiments/protocol/record.h"
#include "models/catalogue.h"
#include "runner/training/checkpoints.h"
#include "tests/models/networks/catalogue_network.h"
#include "tests/runner/parity/unsynchronised.h"
#include "tests/runner/support/doctest_beside_torch.h"
#include "tests/runner/support/parity_cases.h"
#include "tests/runner/support/replicas.h"
#include "tests/support/scratch_folder.h"

namespace trainyard::runner::parity_check_test {

using namespace testing;

using Outcomes = std::map<int, std::vector<ProbedStep>>;  // by rank

constexpr std::int64_t samples = 40;
constexpr std::int64_t global_batch = 13;

experiments::Run run_on(const std::string& model, std::int64_t replicas, std::int64_t stages,
                        std::int64_t micro_batches = 1) {
  const char* kind = stages > 1 ? (replicas > 1 ? "mp-ddp" : "pipeline") : (replicas > 1 ? "ddp" : "single");
  experiments::Run run = parity_run(parity_model(model), {.name = kind,
                                                          .kind = kind,
                                                          .replicas = replicas,
                                                          .stages = stages,
                                                          .schedule = stages > 1 ? "1f1b" : "",
                                                          .micro_batches = micro_batches});
  run.global_batch = global_batch;
  return run;
}

// No time limit, so that no step is left out on a busy machine.
constexpr ProbeLimit no_limit{.seconds = 1e9};

// Runs the parity check. `prepare` may change the connections of a rank.
Outcomes probe(const experiments::Run& run, const std::function<void(Connections&)>& prepare = {},
               const ProbeLimit& limit = no_limit) {
  const ParityModel model = parity_model(run.model);
  const Mesh mesh{static_cast<int>(run.strategy.replicas), static_cast<int>(run.strategy.stages)};
  Outcomes outcomes;
  std::mutex mutex;
  run_mesh(mesh, [&](Connections& ranks) {
    if (prepare) prepare(ranks);
    const auto data = data_of(model, samples, at::kFloat, model.name == "cnn" || model.name == "vgg11");
    const auto done = [&](const ProbedStep& outcome) {
      const std::lock_guard lock(mutex);
      outcomes[ranks.position.replica * mesh.stages + ranks.position.stage].push_back(outcome);
    };
    probe_parity(resolve(run), model.input, *data, ranks, done, limit);
  });
  return outcomes;
}

// The tolerances of the report: for float32 those of the parity table, for half precision its rounding.
struct Tolerance {
  double loss = 1e-5;
  double gradient = 1e-4;
  double whole_gradient = 1e-6;
};
constexpr Tolerance of_bfloat16{4e-3, 2e-2, 1e-3};
constexpr Tolerance of_float16{5e-4, 2.5e-3, 1.25e-4};

bool same_gradient(const ProbedLayer& layer, const ProbedStep& outcome, const Tolerance& tolerance) {
  return layer.difference.value() <=
         tolerance.gradient * layer.gradient_norm + tolerance.whole_gradient * outcome.gradient_norm;
}

// The first layer of a replica 0 that differs. Empty if none does.
std::string first_difference(const ProbedStep& outcome, const Tolerance& tolerance = {}) {
  for (const ProbedLayer& layer : outcome.layers)
    if (!same_gradient(layer, outcome, tolerance)) return layer.path;
  return "";
}

std::map<std::string, std::set<std::string>> hashes_by_layer(const Outcomes& outcomes, std::size_t step) {
  std::map<std::string, std::set<std::string>> hashes;
  for (const auto& [rank, steps] : outcomes)
    for (const ProbedLayer& layer : steps.at(step).layers) hashes[layer.path].insert(layer.parameter_hash);
  return hashes;
}

std::size_t parameters_of(const experiments::Run& run) {
  return networks::build_network(run.model, run.hyperparameters, parity_model(run.model).input, run.seed)
      .parameters()
      .size();
}

void check_passes(const experiments::Run& run, const Tolerance& tolerance = {}) {
  const Outcomes outcomes = probe(run);
  CHECK(outcomes.size() == static_cast<std::size_t>(run.strategy.world_size()));
  for (const auto& outcome : outcomes) {
    const int rank = outcome.first;
    const std::vector<ProbedStep>& steps = outcome.second;
    CAPTURE(rank);
    REQUIRE(steps.size() == 2);
    const bool first_replica = rank < run.strategy.stages;
    for (std::size_t k = 0; k < 2; ++k) {
      CAPTURE(k);
      CHECK(steps[k].step == static_cast<std::int64_t>(k) + 1);
      CHECK(steps[k].loss > 0);
      CHECK(steps[k].loss == outcomes.at(0)[k].loss);
      CHECK(steps[k].gradient_norm > 0);
      CHECK(steps[k].reference_loss.has_value() == first_replica);
      if (!first_replica) continue;
      CHECK(std::abs(steps[k].loss - *steps[k].reference_loss) <= tolerance.loss * *steps[k].reference_loss);
      CHECK(first_difference(steps[k], tolerance) == "");
    }
  }
  for (const std::size_t step : {0, 1}) {
    const auto hashes = hashes_by_layer(outcomes, step);
    CHECK(hashes.size() == parameters_of(run));
    for (const auto& layer : hashes) {
      CAPTURE(layer.first);
      CHECK(layer.second.size() == 1);
    }
  }
  for (const auto& layer : hashes_by_layer(outcomes, 0)) {
    CAPTURE(layer.first);
    CHECK(layer.second != hashes_by_layer(outcomes, 1).at(layer.first));  // a step changes every layer
  }
}

// The results of a run with four ranks.
struct Left {
  std::string weights;
  std::string metrics;  // the metrics of all ranks, one line of JSON per record
  int probes = 0;       // number of records
};

Left train_to_the_end(experiments::Run run, bool probed) {
  const trainyard::tests::ScratchFolder folder;
  run.data.dataset = run.data.source = "synthetic-color-digits";
  run.data.train_samples = samples;
  run.epochs = 2;
  run.save = "last";
  experiments::Launch launch;
  launch.key = "0123456789ab";
  launch.records = folder.path();
  launch.run = run;
  launch.probe = probed;
  train_launched(launch);
  Left left{.weights = trainyard::tests::read_text(folder / weights_file_name), .metrics = ""};
  for (int rank = 0; rank < 4; ++rank) {
    std::istringstream lines(trainyard::tests::read_text(folder / experiments::rank_records_name(rank)));
    for (std::string line; std::getline(lines, line);) {
      const auto record = experiments::parse_line(line).record.value();
      if (record.type == "probe") ++left.probes;
      if (record.body.contains("metrics")) left.metrics += record.body.at("metrics").dump() + "\n";
    }
  }
  return left;
}

TEST_CASE("parity check: every model passes in half precision, and its losses differ from those of float32") {
  for (const std::string model : {"mlp", "cnn", "vgg11", "nbow", "seq2seq", "conv-autoencoder"}) {
    CAPTURE(model);
    experiments::Run run = run_on(model, 2, 2, 2);
    const double exact = probe(run).at(0).front().loss;
    for (const auto& each : {std::pair("bfloat16", of_bfloat16), std::pair("float16", of_float16)}) {
      CAPTURE(each.first);
      run.precision = each.first;
      check_passes(run, each.second);
      const double mixed = probe(run).at(0).front().loss;
      CHECK(mixed == doctest::Approx(exact).epsilon(0.05));
      if (model != "nbow") CHECK(mixed != exact);
    }
  }
}

TEST_CASE("parity check: every kind of mesh passes, with dropout, in both steps") {
  check_passes(run_on("mlp", 1, 1));
  check_passes(run_on("cnn", 3, 1));
  check_passes(run_on("nbow", 2, 1));
  check_passes(run_on("seq2seq", 1, 2, 4));
  check_passes(run_on("conv-autoencoder", 2, 2, 2));
}

TEST_CASE("parity check: batch normalisation passes, both local and synchronised") {
  check_passes(run_on("vgg11", 2, 1));
  check_passes(run_on("vgg11", 2, 2, 2));
  experiments::Run run = run_on("vgg11", 2, 1);
  run.batch_norm = "sync";
  check_passes(run);
}

TEST_CASE("parity check: runs with other samplers, clipping, accumulation and augmentation pass") {
  experiments::Run run = run_on("mlp", 2, 1);
  run.sampler = "distributed";
  run.global_batch = 14;
  check_passes(run);
  run = run_on("cnn", 2, 2, 2);
  run.gradient_accumulation = 3;
  run.optimizer.clip_norm = 0.01;  // less than any gradient here
  check_passes(run);
  run = run_on("cnn", 2, 1);
  run.optimizer.kind = "adam";
  run.optimizer.momentum = 0;
  run.optimizer.learning_rate = 0.001;
  run.augmentation = "flip-crop";
  check_passes(run);
}

TEST_CASE("parity check: the second step is compared with a step from the arm's own weights") {
  // With these two seeds, rounding in the first step decides whether an activation of the second is above
  // zero. Correct trainings then differ. Adam makes it likely: it moves weights with tiny gradients like all
  // others.
  for (const std::uint64_t seed : {116, 121}) {
    CAPTURE(seed);
    experiments::Run run = run_on("vgg11", 2, 2, 2);
    run.seed = seed;
    run.optimizer.kind = "adam";
    run.optimizer.momentum = 0;
    run.optimizer.learning_rate = 0.05;
    check_passes(run);
  }
}

TEST_CASE("parity check: gradients that are not synchronised differ from the first layer on") {
  const experiments::Run run = run_on("cnn", 2, 1);
  const Outcomes outcomes = probe(run, [](Connections& ranks) { stop_reducing(ranks); });
  const auto first = networks::build_network("cnn", run.hyperparameters, parity_model("cnn").input, 0)
                         .parameters()
                         .front()
                         .name;
  CHECK(first_difference(outcomes.at(0).at(0)) == first);
  // The loss of the first step is still the mean over the batch, so it does not show the error.
  CHECK(outcomes.at(0)[0].loss == doctest::Approx(*outcomes.at(0)[0].reference_loss).epsilon(1e-5));
  for (const auto& layer : hashes_by_layer(outcomes, 0)) {
    CAPTURE(layer.first);
    CHECK(layer.second.size() == 2);
  }
}

TEST_CASE("parity check: if only one stage does not synchronise, its first layer is named") {
  const Outcomes outcomes = probe(run_on("mlp", 2, 2, 2), [](Connections& ranks) {
    if (ranks.position.stage == 1) stop_reducing(ranks);
  });
  CHECK(first_difference(outcomes.at(0).at(0)) == "");
  CHECK(first_difference(outcomes.at(1).at(0)) == outcomes.at(1)[0].layers.front().path);
}

TEST_CASE("parity check: if time is short, all ranks leave out the second step, and never the first") {
  const Outcomes outcomes = probe(run_on("mlp", 2, 2, 2), {}, {.seconds = 0, .part_of_the_run = 0});
  CHECK(outcomes.size() == 4);
  for (const auto& of_rank : outcomes) CHECK(of_rank.second.size() == 1);
  // In a long run any fraction of its time is enough.
  experiments::Run run = run_on("mlp", 2, 1);
  run.epochs = 1'000'000'000;
  for (const auto& of_rank : probe(run, {}, {.seconds = 0})) CHECK(of_rank.second.size() == 2);
}

TEST_CASE("parity check: weights and metrics are the same bits with and without it") {
  const models::InputShape input =
      models::facts(models::find_dataset("synthetic-color-digits"), "", {}).input;
  experiments::Run run = run_on("vgg11", 2, 2, 2);  // batch normalisation, dropout, momentum
  run.data.input = input;
  const Left plain = train_to_the_end(run, false);
  const Left probed = train_to_the_end(run, true);
  CHECK(plain.probes == 0);
  CHECK((probed.probes == 4 || probed.probes == 4 * 2));  // one step per rank, or two if there is time
  CHECK(plain.weights.size() > 1000);
  CHECK(probed.weights == plain.weights);
  CHECK(std::ranges::count(plain.metrics, '\n') == 4 * 3);
  CHECK(probed.metrics == plain.metrics);
}

}  // namespace trainyard::runner::parity_check_test
