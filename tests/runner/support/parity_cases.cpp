#include "tests/runner/support/parity_cases.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <random>
#include <stdexcept>
#include <utility>

#include <unistd.h>

#include "base/error.h"
#include "base/sha256.h"
#include "experiments/design/experiment.h"
#include "experiments/matrix/stage_split.h"
#include "experiments/run/run_model.h"
#include "models/catalogue.h"
#include "models/samples/tokenizer.h"
#include "runner/data/task.h"
#include "tests/runner/support/replicas.h"

namespace trainyard::runner::testing {

namespace {

using Integers = std::vector<std::int64_t>;

constexpr models::ImageShape small_image{.channels = 2, .height = 9, .width = 8};

std::int64_t between(std::mt19937& numbers, std::int64_t low, std::int64_t high) {  // both included
  return low + static_cast<std::int64_t>(numbers() % static_cast<unsigned>(high - low + 1));
}

// Random words of a vocabulary, without special tokens.
std::vector<std::int32_t> random_words(std::mt19937& numbers, std::int64_t vocabulary) {
  std::vector<std::int32_t> words(static_cast<std::size_t>(between(numbers, 1, 7)));
  for (std::int32_t& word : words) {
    word = static_cast<std::int32_t>(between(numbers, models::end_token + 1, vocabulary - 1));
  }
  return words;
}

models::Texts random_texts(const models::InputShape& input, std::int64_t samples) {
  std::mt19937 numbers(1);
  models::Texts texts;
  for (std::int64_t i = 0; i < samples; ++i) {
    texts.tokens.append(random_words(numbers, input.vocabulary));
    texts.labels.push_back(static_cast<std::uint8_t>(between(numbers, 0, input.classes - 1)));
  }
  return texts;
}

models::TextPairs random_pairs(const models::InputShape& input, std::int64_t samples) {
  std::mt19937 numbers(1);
  models::TextPairs pairs;
  for (std::int64_t i = 0; i < samples; ++i) {
    auto source = random_words(numbers, input.vocabulary);
    auto target = random_words(numbers, input.target_vocabulary);
    source.push_back(models::end_token);
    target.insert(target.begin(), models::begin_token);
    target.push_back(models::end_token);
    pairs.source.append(source);
    pairs.target.append(target);
  }
  return pairs;
}

// The numbers depend on the values, with noise.
models::Rows random_rows(std::int64_t columns, std::int64_t samples) {
  std::mt19937 numbers(1);
  models::Rows rows{.columns = columns, .values = {}, .labels = {}, .numbers = {}};
  const auto any = [&] { return static_cast<float>(between(numbers, -1000, 1000)) / 500; };
  for (std::int64_t i = 0; i < samples; ++i) {
    float sum = any();
    for (std::int64_t column = 0; column < columns; ++column) sum += rows.values.emplace_back(any());
    rows.numbers.push_back(sum / 2);
  }
  return rows;
}

models::Windows random_windows(const models::InputShape& input, std::int64_t samples) {
  std::mt19937 numbers(1);
  models::Windows windows;
  std::vector<std::int32_t> window(static_cast<std::size_t>(input.source_length + 1));
  for (std::int64_t i = 0; i < samples; ++i) {
    for (std::int32_t& token : window)
      token = static_cast<std::int32_t>(between(numbers, models::end_token + 1, input.vocabulary - 1));
    windows.tokens.append(window);
  }
  return windows;
}

models::Samples random_samples(const models::InputShape& input, std::int64_t samples) {
  if (input.classes == 1) return random_rows(input.image.channels, samples);
  if (input.source_length > 0) return random_windows(input, samples);
  if (input.target_vocabulary > 0) return random_pairs(input, samples);
  if (input.vocabulary > 0) return random_texts(input, samples);
  return random_images(input.image, samples, input.classes);
}

models::Hyperparameters with(const std::string& model, const models::Hyperparameters& changes) {
  models::Hyperparameters values;
  for (const Parameter& parameter : models::find_model(model).hyperparameters) {
    values[parameter.name] = parameter.fallback.value();
  }
  for (const auto& [name, value] : changes) values.at(name) = value;
  return values;
}

// The boundary depends on the strategy, so that different activations pass between stages.
std::int64_t boundary(const experiments::Strategy& strategy, std::int64_t layers) {
  if (strategy.schedule.empty() || strategy.replicas > 1) return layers / 2;
  return strategy.schedule == "gpipe" ? std::max<std::int64_t>(1, layers / 3) : layers - 1 - layers / 5;
}

// The boundary of two stages of a network of PyTorch.
std::int64_t exported_boundary(experiments::Run run, const models::InputShape& input) {
  if (run.strategy.kind == "mp") {
    run.data.input = input;
    experiments::Experiment experiment;
    experiment.runs = {run};
    experiments::resolve_stages(experiment);
    return experiment.runs.front().strategy.boundaries.front();
  }
  const models::Graph graph = experiments::graph_of(run, input);
  std::vector<std::int64_t> cuts;  // nodes at which a stage may begin
  for (std::size_t i = 1; i < graph.nodes.size(); ++i)
    if (graph.nodes[i].may_begin_stage) cuts.push_back(static_cast<std::int64_t>(i));
  const auto crossing_at = [&](std::int64_t cut) {
    return models::crossing(graph, static_cast<std::size_t>(cut)).size();
  };
  if (run.strategy.schedule == "gpipe") return std::ranges::max(cuts, {}, crossing_at);  // most values cross
  const auto count = static_cast<std::int64_t>(cuts.size());
  return cuts.at(
      static_cast<std::size_t>(run.strategy.replicas > 1 ? count / 4 : boundary(run.strategy, count)));
}

// Every layer that can be split without another one, and those with a tied weight.
Integers layers_to_split(const models::Graph& graph, std::int64_t parts) {
  Integers layers;
  for (const std::int64_t layer : models::splittable_layers(graph)) try {
      const models::Node& node = graph.nodes.at(static_cast<std::size_t>(layer));
      if (node.kind != "tied_linear" && node.makes.size() == 1)
        models::graph_of_part(graph, {parts, {layer}}, 0);
      layers.push_back(layer);
    } catch (const UserError&) {
    }
  return layers;
}

constexpr const char* script = "tests/runner/parity/exported_networks.py";

bool export_networks() {
  const std::string python = TRAINYARD_TORCH_PYTHON;
  if (python.empty()) return false;
  std::ifstream in(script);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  if (text.empty()) throw std::runtime_error(std::string(script) + " cannot be read");
  const std::filesystem::path folder = TRAINYARD_EXPORTED_NETWORKS,
                              stamp = folder / (sha256_hex(text) + ".done");
  if (std::filesystem::exists(stamp)) return true;
  const std::filesystem::path draft = folder.string() + "." + std::to_string(getpid());
  std::filesystem::create_directories(draft);
  if (std::system((python + " -B " + script + " " + draft.string()).c_str()) != 0)
    throw std::runtime_error(std::string(script) + " has failed");
  std::ofstream(draft / stamp.filename()) << "";
  std::filesystem::remove_all(folder);
  std::filesystem::rename(draft, folder);
  return true;
}

}  // namespace

bool have_exported_networks() {
  static const bool have = export_networks();
  return have;
}

std::filesystem::path exported_network(const std::string& name, at::ScalarType dtype) {
  const char* type = dtype == at::kDouble ? ".float64.pt2" : ".float32.pt2";
  return std::filesystem::path(TRAINYARD_EXPORTED_NETWORKS) / (name + type);
}

std::string task_of(const ParityModel& model) {
  models::DataChoice data;
  data.dataset = model.dataset;
  return model.exported_task.empty() ? models::task_of(models::find_model(model.name), data)
                                     : model.exported_task;
}

ParityModel parity_model(const std::string& name) {
  const models::InputShape images{.image = small_image, .classes = 10};
  const models::InputShape texts{.image = {0, 0, 0}, .classes = 2, .vocabulary = 23};
  const models::InputShape pairs{.image = {0, 0, 0}, .vocabulary = 23, .target_vocabulary = 19};
  if (name == "mlp") return {name, with(name, {{"hidden", Integers{11, 9}}}), images};
  if (name == "mlp-rows")
    return {"mlp",
            with("mlp", {{"hidden", Integers{11, 9}}}),
            {.image = {7, 1, 1}, .classes = 1},
            false,
            0.05,
            "",
            "csv"};
  if (name == "cnn") {
    return {name, with(name, {{"channels", Integers{3, 5}}, {"hidden", Integers{11}}}), images};
  }
  if (name == "vgg11") {
    const models::Hyperparameters small{{"width", std::int64_t{4}},
                                        {"head", std::string("paper")},
                                        {"head_width", std::int64_t{12}},
                                        {"dropout", 0.3}};
    return {name, with(name, small), {.image = {3, 32, 32}, .classes = 10}, true};
  }
  if (name == "nbow") {
    return {name, with(name, {{"embedding", std::int64_t{9}}, {"dropout", 0.3}}), texts, false, 0.5};
  }
  if (name == "seq2seq") {
    return {name, with(name, {{"embedding", std::int64_t{6}}, {"hidden", std::int64_t{7}}, {"dropout", 0.5}}),
            pairs, false, 0.5};
  }
  if (name == "conv-autoencoder") {
    return {name,
            with(name, {{"channels", Integers{3, 4, 5}}}),
            {.image = {2, 12, 10}, .classes = 10},
            false,
            0.5};
  }
  if (name == "mobilenet-v2") {
    // the smallest channels; at a larger learning rate rounding grows tenfold per step
    return {name,
            with(name, {{"width", 0.1}, {"dropout", 0.3}}),
            {.image = {2, 32, 32}, .classes = 10},
            true,
            1e-6};
  }
  if (name == "gpt") {
    const models::Hyperparameters small{{"layers", std::int64_t{2}},
                                        {"heads", std::int64_t{2}},
                                        {"width", std::int64_t{8}},
                                        {"bias", true},
                                        {"dropout", 0.3}};
    return {name, with(name, small), {.image = {0, 0, 0}, .vocabulary = 23, .source_length = 9}, false, 0.5};
  }
  if (name == "exported-resnet" || name == "exported-mobilenet")
    return {name, {}, images, true, 0.05, "classification"};
  if (name == "exported-vit" || name == "exported-switching")
    return {name, {}, images, false, 0.05, "classification"};
  if (name == "exported-transformer" || name == "exported-lstm")
    return {name, {}, texts, false, 0.1, "classification"};
  if (name == "exported-gpt") return {name, {}, pairs, false, 0.1, "translation"};
  throw std::invalid_argument("no small " + name);
}

experiments::Run with_network(experiments::Run run, const ParityModel& model,
                              const std::filesystem::path& exported) {
  run.declared.model_title = model.name;
  run.declared.task = task_of(model);
  run.exported = {exported.string(),
                  experiments::exported_model({model.name, model.name, task_of(model), exported}).sha256};
  return run;
}

experiments::Run parity_run(const ParityModel& model, const experiments::Strategy& strategy,
                            at::ScalarType dtype) {
  experiments::Run run;
  run.model = model.name;
  run.hyperparameters = model.hyperparameters;
  run.data.dataset = run.data.source = model.dataset;
  run.strategy = strategy;
  if (!model.exported_task.empty()) run = with_network(run, model, exported_network(model.name, dtype));
  if (strategy.stages == 2 && run.exported) run.strategy.boundaries = {exported_boundary(run, model.input)};
  if (strategy.stages == 2 && !run.exported) {
    const auto layers = experiments::graph_of(run, model.input).nodes.size();
    run.strategy.boundaries = {boundary(strategy, static_cast<std::int64_t>(layers))};
  }
  if (strategy.tensor > 1) {
    const models::Graph graph = experiments::graph_of(run, model.input);
    run.global_batch = 1'000'000;  // so that these small layers are worth splitting
    run.strategy.tensor_split = strategy.tensor_source == "auto"
                                    ? models::cheapest_split(graph, strategy.tensor, run.global_batch)
                                    : layers_to_split(graph, strategy.tensor);
  }
  run.optimizer.learning_rate = model.learning_rate;
  run.optimizer.weight_decay = 0.001;
  run.seed = 7;
  return run;
}

std::unique_ptr<Dataset> data_of(const ParityModel& model, std::int64_t samples, at::ScalarType dtype,
                                 bool channels_last) {
  const models::Samples all = random_samples(model.input, samples);
  DataParts parts = make_parts({all, all, all}, find_task(task_of(model)), dtype, channels_last);
  return std::move(parts.train);
}

}  // namespace trainyard::runner::testing
