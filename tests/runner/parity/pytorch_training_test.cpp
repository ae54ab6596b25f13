// Exported networks compared with the eager PyTorch that they were exported from. Both train in float64 from
// the same weights, on the same batches, by SGD with momentum and weight decay. Batches of texts have
// different lengths.
// - The seven networks of exported_networks.py, and trainyard's models from models/NAME/NAME.py. Four of these
//   have a second form.
// - Without dropout, and with it: then PyTorch drops the values that trainyard's streams choose.
// - trainyard's models are also compared with their own networks. PyTorch counts their operations.
// - Evaluation is compared under every strategy.
// - TRAINYARD_PARITY_MODEL=NAME compares one of trainyard's models only.
#include <array>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <nlohmann/json.hpp>

#include "experiments/run/run_model.h"
#include "models/exported/operators.h"
#include "models/networks/dropout.h"
#include "models/networks/random_stream.h"
#include "models/networks/safetensors.h"
#include "runner/gradients/sparse_gradient.h"
#include "runner/parity/reference_trainer.h"
#include "tests/runner/support/doctest_beside_torch.h"
#include "tests/runner/support/parity_cases.h"
#include "tests/runner/support/replicas.h"
#include "tests/support/scratch_folder.h"

namespace trainyard::runner::pytorch_training_test {

using namespace testing;

using networks::NamedParameter;
using Tensors = std::map<std::string, at::Tensor>;  // names as in pytorch_training.py

constexpr std::int64_t steps = 10;
constexpr std::int64_t batch = 7;
constexpr std::int64_t samples = 40;
constexpr double dropout_of_networks = 0.3;
constexpr std::array<std::int64_t, 2> counted_lengths{9, 8};  // of the texts whose operations are counted

struct Case {
  std::string name;  // of the files
  ParityModel model;
  double dropout = 0;  // 0 if the model has none
  experiments::Run run;
  bool own() const { return model.exported_task.empty(); }  // a model of trainyard
};

Case make_case(const std::string& name) {
  using Change = std::pair<std::string, Value>;
  static const std::map<std::string, std::pair<std::string, Change>> second_forms{
      {"vgg11-compact", {"vgg11", {"head", std::string("compact")}}},
      {"seq2seq-deep", {"seq2seq", {"layers", std::int64_t{3}}}},
      {"mobilenet-v2-imagenet", {"mobilenet-v2", {"stem", std::string("imagenet")}}},
      {"gpt-untied", {"gpt", {"tied_head", false}}}};
  const auto second = second_forms.find(name);
  const bool first = second == second_forms.end();
  Case made{.name = name, .model = parity_model(first ? name : second->second.first), .run = {}};
  models::Hyperparameters& values = made.model.hyperparameters;
  if (!first) values.at(second->second.second.first) = second->second.second.second;
  if (name == "conv-autoencoder") made.model.input.image = {.channels = 1, .height = 28, .width = 28};
  if (!made.own()) made.dropout = dropout_of_networks;
  if (values.contains("dropout")) {
    made.dropout = std::get<double>(values.at("dropout"));
    values.at("dropout") = 0.0;
  }
  made.run = parity_run(made.model, {.name = "single", .kind = "single"});
  return made;
}

at::Tensor indices_of(std::int64_t step) {
  return at::arange(step * batch, (step + 1) * batch).remainder(samples);
}

Tensors train(const Case& c, const experiments::Run& run) {
  ReferenceTrainer trainer(resolve(run), c.model.input, 1, 1, at::kDouble);
  const auto data = data_of(c.model, samples, at::kDouble, trainer.network().channels_last);
  std::map<std::string, std::vector<at::Tensor>> of_steps;
  for (std::int64_t step = 0; step < steps; ++step) {
    const at::Tensor indices = indices_of(step);
    of_steps["loss"].push_back(
        at::scalar_tensor(trainer.step(*data, indices, data->weight(indices)), at::kDouble));
    const auto parameters = trainer.network().parameters();
    for (std::size_t i = 0; i < parameters.size(); ++i)
      of_steps["gradient." + parameters[i].name].push_back(whole(trainer.gradients()[i]).clone());
  }
  Tensors found;
  for (const auto& [name, values] : of_steps) found[name] = at::stack(values);
  for (const NamedParameter& each : trainer.network().state())
    found["value." + each.name] = each.value.detach().to(at::kDouble).clone();
  const at::NoGradGuard no_grad;
  networks::ForwardContext evaluation;
  evaluation.training = false;
  found["output"] = trainer.network().forward(data->inputs(indices_of(0)), evaluation).front();
  return found;
}

// The mean loss of all samples in evaluation, after the same steps on the ranks of `run`.
double evaluate(const Case& c, const experiments::Run& run) {
  const Mesh mesh{static_cast<int>(run.strategy.replicas), static_cast<int>(run.strategy.stages)};
  double loss = 0;
  std::int64_t weight = 0;
  std::mutex mutex;
  run_mesh(mesh, [&](const Connections& ranks) {
    Trainer trainer(resolve(run), c.model.input, ranks, at::kDouble);
    const auto data = data_of(c.model, samples, at::kDouble, trainer.network().channels_last);
    for (std::int64_t step = 0; step < steps; ++step) {
      const at::Tensor indices = indices_of(step);
      const Part part = part_of({0, indices.size(0)}, ranks.position.replica, mesh.replicas);
      trainer.step(*data, indices.slice(0, part.begin, part.end), data->weight(indices));
    }
    const Sampler sampler(samples, 2 * batch, ranks.position.replica, mesh.replicas);
    const MetricSums sums = trainer.evaluate(*data, sampler, [](std::int64_t, const MetricSums&) {});
    const std::lock_guard lock(mutex);
    if (!ranks.last_stage()) return;
    loss += sums.loss();
    weight += sums.weight();
  });
  return loss / static_cast<double>(weight);
}

// Every strategy, and every cut of the network into two stages.
std::vector<experiments::Run> meshes_of(const Case& c, const experiments::Run& run, bool all_cuts) {
  std::vector<experiments::Strategy> strategies{
      {.name = "ddp", .kind = "ddp", .replicas = 2},
      {.name = "1f1b", .kind = "pipeline", .stages = 2, .schedule = "1f1b", .micro_batches = 3},
      {.name = "mp-ddp",
       .kind = "mp-ddp",
       .replicas = 2,
       .stages = 2,
       .schedule = "gpipe",
       .micro_batches = 2}};
  const models::Graph graph = experiments::graph_of(run, c.model.input);
  std::vector<std::int64_t> cuts;
  for (std::size_t i = 1; i < graph.nodes.size(); ++i)
    if (graph.nodes[i].may_begin_stage) cuts.push_back(static_cast<std::int64_t>(i));
  REQUIRE(cuts.size() >= 4);
  for (experiments::Strategy& strategy : strategies)
    if (strategy.stages == 2) strategy.boundaries = {cuts.at(cuts.size() / 2)};
  strategies.push_back({.name = "thirds", .kind = "mp", .stages = 3, .boundaries = {cuts[1], cuts.back()}});
  for (const std::int64_t cut : cuts)
    if (all_cuts) strategies.push_back({.name = "cut", .kind = "mp", .stages = 2, .boundaries = {cut}});
  std::vector<experiments::Run> runs(strategies.size(), run);
  for (std::size_t i = 0; i < runs.size(); ++i) runs[i].strategy = strategies[i];
  return runs;
}

void check_close(const at::Tensor& found, const at::Tensor& expected) {
  REQUIRE(found.sizes() == expected.sizes());
  // Softmax removes the effect of the biases of keys, and batch normalisation that of a constant. They have only
  // rounding.
  CHECK(largest(found - expected) <= 1e-9 * largest(expected) + 1e-13);
}

void check_trained(const Tensors& found, const Tensors& expected) {
  for (const auto& each : expected) {
    if (each.first == "evaluation" || each.first.starts_with("flops.")) continue;
    if (each.first.ends_with(".num_batches_tracked") && !found.contains(each.first))
      continue;  // only PyTorch's
    CAPTURE(each.first);
    REQUIRE(found.contains(each.first));
    const at::Tensor& tensor = found.at(each.first);
    const bool of_steps = each.first == "loss" || each.first.starts_with("gradient.");
    if (!of_steps) check_close(tensor, each.second);
    for (std::int64_t step = 0; of_steps && step < steps; ++step) {
      CAPTURE(step);
      check_close(tensor[step], each.second[step]);
    }
  }
  CHECK(expected.at("loss")[0].item<double>() != expected.at("loss")[steps - 1].item<double>());
}

Tensors read(const std::filesystem::path& file) {
  Tensors tensors;
  for (const NamedParameter& each : networks::parse_safetensors(tests::read_text(file), "weights"))
    tensors[each.name] = each.value;
  return tensors;
}

nlohmann::json describe(const Case& c, std::size_t inputs) {
  nlohmann::json values = nlohmann::json::object();
  for (const auto& each : c.model.hyperparameters)
    std::visit([&](const auto& value) { values[each.first] = value; }, each.second);
  const models::InputShape& input = c.model.input;
  return {{"name", c.name},
          {"model", c.model.name},
          {"task", task_of(c.model)},
          {"dropout", c.dropout},
          {"hyperparameters", values},
          {"input",
           {{"channels", input.image.channels},
            {"height", input.image.height},
            {"width", input.image.width},
            {"classes", input.classes},
            {"vocabulary", input.vocabulary},
            {"target_vocabulary", input.target_vocabulary},
            {"source_length", input.source_length}}},
          {"counted_lengths", counted_lengths},
          {"inputs", inputs},
          {"steps", steps},
          {"learning_rate", c.run.optimizer.learning_rate},
          {"momentum", c.run.optimizer.momentum},
          {"weight_decay", c.run.optimizer.weight_decay}};
}

// Writes what pytorch_training.py reads.
void write_cases(const std::filesystem::path& folder, const std::vector<Case>& cases) {
  nlohmann::json descriptions = nlohmann::json::array();
  for (const Case& c : cases) {
    const auto data = data_of(c.model, samples, at::kDouble, /*channels_last=*/false);
    std::vector<NamedParameter> tensors;
    std::size_t inputs = 0;
    for (std::int64_t step = 0; step <= steps; ++step) {
      const std::string suffix = step < steps ? "." + std::to_string(step) : ".all";
      const Batch of_step = data->gather(step < steps ? indices_of(step) : at::arange(samples));
      inputs = of_step.inputs.size();
      for (std::size_t i = 0; i < inputs; ++i)
        tensors.push_back({"input." + std::to_string(i) + suffix, of_step.inputs[i]});
      tensors.push_back({"target" + suffix, of_step.targets});
    }
    networks::write_safetensors(folder / (c.name + ".batches.safetensors"), tensors);
    if (c.own())
      networks::write_safetensors(
          folder / (c.name + ".weights.safetensors"),
          networks::build_network(experiments::graph_of(c.run, c.model.input), {c.run.seed, at::kDouble})
              .state());
    descriptions.push_back(describe(c, inputs));
  }
  std::ofstream(folder / "cases.json") << descriptions;
}

void run_pytorch(const std::string& phase, const std::filesystem::path& folder) {
  const std::string command = std::string(TRAINYARD_TORCH_PYTHON) +
                              " -B -W ignore tests/runner/parity/pytorch_training.py " + phase + " " +
                              folder.string();
  REQUIRE(std::system(command.c_str()) == 0);
}

// Writes the factors of each call that drops values. `calls`: see pytorch_training.py. The calls are in the order of
// the nodes.
void write_factors(const std::filesystem::path& file, const Case& c, const experiments::Run& run,
                   const nlohmann::json& calls) {
  std::vector<std::string> paths;
  for (const models::Node& node : experiments::graph_of(run, c.model.input).nodes)
    if (models::draws_random_numbers(node)) paths.push_back(node.path);
  std::vector<NamedParameter> factors;
  for (std::int64_t step = 0; step < steps; ++step) {
    const nlohmann::json& of_step = calls.at(static_cast<std::size_t>(step));
    REQUIRE(of_step.size() == paths.size());
    for (std::size_t call = 0; call < paths.size(); ++call) {
      const auto shape = of_step[call].at("shape").get<std::vector<std::int64_t>>();
      const networks::DropoutStream stream{networks::stream_seed("dropout", run.seed, paths[call]), step,
                                           of_step[call].at("p").get<double>()};
      const auto draw = of_step[call].at("attention").get<bool>() ? networks::attention_dropout_factors
                                                                  : networks::dropout_factors;
      factors.push_back({"factor." + std::to_string(call) + "." + std::to_string(step),
                         draw(at::empty(shape, at::kDouble), indices_of(step), stream)});
    }
  }
  networks::write_safetensors(file, factors);
}

void check_evaluated(const Case& c, const experiments::Run& run, double expected) {
  const auto check = [&](const experiments::Run& each) {
    CAPTURE(each.strategy.name);
    CAPTURE(each.strategy.boundaries);
    CHECK(std::abs(evaluate(c, each) - expected) <= 1e-9 * expected);
  };
  check(run);
  if (c.model.batch_norm || c.own()) return;  // local statistics
  for (const experiments::Run& each : meshes_of(c, run, c.model.name == "exported-switching")) check(each);
}

// PyTorch has counted the forward pass of one sample.
void check_operations(const Case& c, const Tensors& eager) {
  models::InputShape input = c.model.input;
  if (input.vocabulary > 0) input.source_length = counted_lengths[0];
  if (input.target_vocabulary > 0) input.target_length = counted_lengths[1];
  for (const models::Node& node : experiments::graph_of(c.run, input).nodes) {
    CAPTURE(node.path);
    CHECK(eager.at("flops." + node.path).item<double>() == node.forward_flops);
  }
}

TEST_CASE("exported networks train and evaluate as eager PyTorch, and as trainyard's own networks") {
  const char* only = std::getenv("TRAINYARD_PARITY_MODEL");
  if (only == nullptr ? !have_exported_networks() : std::string(TRAINYARD_TORCH_PYTHON).empty()) {
    MESSAGE("skipped: no Python with torch was found when this was configured");
    return;
  }
  at::set_num_threads(1);
  std::vector<Case> cases;
  for (const char* name : {"exported-resnet",
                           "exported-mobilenet",
                           "exported-vit",
                           "exported-transformer",
                           "exported-gpt",
                           "exported-lstm",
                           "exported-switching",
                           "mlp",
                           "cnn",
                           "mlp-rows",
                           "vgg11",
                           "vgg11-compact",
                           "nbow",
                           "seq2seq",
                           "seq2seq-deep",
                           "conv-autoencoder",
                           "mobilenet-v2",
                           "mobilenet-v2-imagenet",
                           "gpt",
                           "gpt-untied"})
    if (only == nullptr || std::string(only) == name) cases.push_back(make_case(name));
  REQUIRE(!cases.empty());
  const tests::ScratchFolder folder;
  const auto file = [&](const Case& c, const std::string& suffix) {
    return folder.path() / (c.name + suffix);
  };
  write_cases(folder.path(), cases);
  run_pytorch("export", folder.path());
  const auto calls = nlohmann::json::parse(std::ifstream(folder.path() / "calls.json"));
  for (const Case& c : cases) {
    CAPTURE(c.name);
    const Tensors trained = train(c, with_network(c.run, c.model, file(c, ".pt2")));
    const Tensors eager = read(file(c, ".result.safetensors"));
    check_trained(trained, eager);
    check_evaluated(c, with_network(c.run, c.model, file(c, ".pt2")), eager.at("evaluation").item<double>());
    if (c.own()) {
      const Tensors own = train(c, c.run);
      check_trained(trained, own);
      check_trained(own, eager);
      check_operations(c, eager);
    }
    if (c.dropout > 0)
      write_factors(file(c, ".dropout.factors.safetensors"), c,
                    with_network(c.run, c.model, file(c, ".dropout.pt2")), calls.at(c.name));
  }
  run_pytorch("dropout", folder.path());
  int dropping = 0;
  for (const Case& c : cases) {
    if (c.dropout == 0) continue;
    CAPTURE(c.name);
    check_trained(train(c, with_network(c.run, c.model, file(c, ".dropout.pt2"))),
                  read(file(c, ".dropout.result.safetensors")));
    ++dropping;
  }
  if (only == nullptr) CHECK(dropping == 16);
}

}  // namespace trainyard::runner::pytorch_training_test
