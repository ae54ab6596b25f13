#include "experiments/run/run_model.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <system_error>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/plain_file.h"
#include "base/sha256.h"
#include "models/exported/exported.h"
#include "models/exported/seed_weights.h"
#include "models/exported/weights_file.h"
#include "models/tasks.h"

namespace trainyard::experiments {

namespace {

using models::Exported;
using Sizes = std::vector<std::int64_t>;

struct ExportedFile {
  Exported content;
  std::string sha256;
};

std::string sha256_of(const std::filesystem::path& path) {
  PlainFileReader in(path);
  if (!in) throw UserError(path.string() + ": cannot be opened: " + in.problem(), "correct the path");
  return sha256_hex(in);
}

// A file is read once, if it does not change.
std::shared_ptr<const ExportedFile> read_once(const std::filesystem::path& path) {
  static std::mutex mutex;
  static std::map<std::string, std::shared_ptr<const ExportedFile>> known;  // by hash
  const std::lock_guard lock(mutex);
  std::string sha256 = sha256_of(path);
  std::shared_ptr<const ExportedFile>& file = known[sha256];
  if (file) return file;
  Exported content = models::read_exported(path);
  if (content.own_loss) content.inputs.pop_back();  // the targets
  file = std::make_shared<const ExportedFile>(ExportedFile{std::move(content), sha256});
  return file;
}

std::string sizes_text(const Sizes& sizes) {
  std::vector<std::string> parts;
  for (const std::int64_t size : sizes) parts.push_back(size < 0 ? "any" : std::to_string(size));
  return fmt::format("[{}]", fmt::join(parts, ", "));
}

bool has_numbers(const Exported::Input& value) {
  return value.dtype == models::Dtype::float32 || value.dtype == models::Dtype::float64;
}

bool is_image(const Exported::Input& value) {
  return value.sizes.size() == 4 && has_numbers(value);
}

bool is_row(const Exported::Input& value) {
  return value.sizes.size() == 2 && has_numbers(value);
}

bool has_tokens(const Exported::Input& value) {
  return value.sizes.size() == 2 && value.dtype == models::Dtype::int64;
}

bool is_text(const Exported::Input& value) {
  return has_tokens(value) && value.sizes[1] < 0;
}

bool is_mask_or_types(const Exported::Input& value, const Exported::Input& tokens) {
  const bool fits = value.dtype == models::Dtype::int64 || value.dtype == models::Dtype::boolean ||
                    value.dtype == models::Dtype::float32;
  return fits && value.sizes == tokens.sizes;
}

// Which of the task's data the network reads, by the type of its first input.
models::DataKind kind_of(const Exported& network, const models::Task& task) {
  const bool other =
      task.or_data && is_image(network.inputs.front()) != (task.data == models::DataKind::images);
  return other ? *task.or_data : task.data;
}

// Why the inputs are not those of the task; empty if they are.
std::string input_problem(const Exported& network, const models::Task& task) {
  using Kind = models::DataKind;
  const auto& inputs = network.inputs;
  const Kind kind = kind_of(network, task);
  const bool texts = kind == Kind::texts && has_tokens(inputs[0]);
  if (texts) {
    constexpr std::size_t most = 3;
    const auto is_beside = [&](const Exported::Input& each) { return is_mask_or_types(each, inputs[0]); };
    if (inputs.size() > most || !std::ranges::all_of(std::span(inputs).subspan(1), is_beside))
      return fmt::format(
          "a {} of texts reads int64 tokens [batch, length], then a mask and token types of that size",
          task.name);
  } else if (kind != Kind::text_pairs && inputs.size() != 1) {
    return fmt::format("a {} has one input, but the network has {}", task.name, inputs.size());
  }
  const bool fits = kind == Kind::images       ? is_image(inputs[0])
                    : kind == Kind::rows       ? is_row(inputs[0])
                    : kind == Kind::text_pairs ? inputs.size() == 2 && std::ranges::all_of(inputs, is_text)
                                               : has_tokens(inputs[0]);
  return fits ? "" : fmt::format("a {} reads {}", task.name, reads_text(task));
}

// Whether a size of the output is the one that the task names.
bool is_size(std::int64_t size, const std::string& name, const Exported& network) {
  if (name == "batch") return true;
  if (name == "length") return size == network.inputs.front().sizes[1];
  if (name == "steps") return size == network.inputs.back().sizes[1];
  if (name == "classes" || name == "vocabulary") return size >= 0;
  return std::to_string(size) == name;
}

bool has_output(const Exported& network, const models::Task& task) {
  const Sizes& sizes = network.outputs.front().sizes;
  const std::vector<std::string> names = output_sizes(task);
  if (names.empty()) return network.own_loss || sizes == network.inputs.front().sizes;
  if (sizes.size() != names.size()) return false;
  for (std::size_t i = 0; i < names.size(); ++i)
    if (!is_size(sizes[i], names[i], network)) return false;
  return true;
}

// Why the inputs and outputs are not those of the task; empty if they are.
std::string task_problem(const Exported& network, const std::string& name) {
  const models::Task& task = models::find_task(name);
  const bool own_loss = static_cast<bool>(network.own_loss);
  if (own_loss && name != network.task)
    return fmt::format("its own loss was exported for the task {}", network.task);
  if (own_loss && task.target == models::Target::translation)
    return fmt::format("a {} has the loss of trainyard", name);
  if (std::string why = input_problem(network, task); !why.empty()) return why;
  return has_output(network, task) ? "" : fmt::format("a {} gives {}", name, gives_text(task));
}

// The most tokens that the network accepts, if `trainyard export` has found a bound.
std::optional<std::int64_t> most_tokens(const Exported& network) {
  const auto json = nlohmann::json::parse(network.metadata, nullptr, /*allow_exceptions=*/false);
  const auto most = "/sizes/length/most"_json_pointer;
  if (!json.is_object() || !json.contains(most) || !json[most].is_number_integer()) return std::nullopt;
  return json[most].get<std::int64_t>();
}

// The second input is the mask and the third has the types, unless their names say otherwise.
models::TextForm text_form(const Exported& network, models::DataKind kind) {
  models::TextForm form;
  if (kind == models::DataKind::text_pairs) return form;
  form.length = std::max<std::int64_t>(network.inputs.front().sizes[1], 0);
  form.most = most_tokens(network).value_or(0);
  for (const Exported::Input& each : std::span(network.inputs).subspan(1)) {
    const bool second = form.beside.empty();
    const bool types = each.name.find("type") != std::string::npos;
    const bool mask = each.name.find("mask") != std::string::npos;
    form.beside.push_back({.mask = mask || (second && !types), .dtype = each.dtype});
  }
  return form;
}

// Why windows of a text do not fit the network; empty if they do.
std::string window_problem(const Exported& network, const models::InputShape& input) {
  const std::int64_t length = network.inputs.front().sizes[1];
  const std::int64_t logits = network.outputs.front().sizes.back();
  const std::int64_t most = length < 0 ? most_tokens(network).value_or(input.source_length) : length;
  if (input.source_length > most || (length >= 0 && input.source_length > 0 && input.source_length < most))
    return fmt::format("it reads {} {} tokens, but window_length is {}", length < 0 ? "at most" : "exactly",
                       most, input.source_length);
  if (logits < input.vocabulary)
    return fmt::format("it has logits for {} tokens, but the data has {}", logits, input.vocabulary);
  return "";
}

// Why the data does not fit the network; empty if it does. What is 0 in `input` is not known yet.
std::string data_problem(const Exported& network, const models::Task& task, const models::InputShape& input) {
  const Sizes& sizes = network.inputs.front().sizes;
  const Sizes& output = network.outputs.front().sizes;
  if (is_image(network.inputs.front())) {
    const Sizes samples{input.image.channels, input.image.height, input.image.width};
    for (std::size_t i = 0; i < samples.size(); ++i)
      if (sizes[i + 1] >= 0 && samples[i] > 0 && sizes[i + 1] != samples[i])
        return fmt::format(
            "it reads images {}, but the images of the data are {}{}",
            sizes_text({sizes.begin() + 1, sizes.end()}), sizes_text(samples),
            i > 0 && sizes[2] == sizes[3] ? fmt::format("; image_size = {} scales them", sizes[2]) : "");
  }
  if (is_row(network.inputs.front()) && input.image.channels > 0 && sizes[1] != input.image.channels)
    return fmt::format("it reads {} columns, but the data has {} input columns",
                       sizes[1] < 0 ? "any number of" : std::to_string(sizes[1]), input.image.channels);
  const bool windows = task.data == models::DataKind::windows;
  if (windows)
    if (std::string why = window_problem(network, input); !why.empty()) return why;
  const bool translates = task.data == models::DataKind::text_pairs;
  const bool classifies = std::ranges::find(task.output, "classes") != task.output.end();
  const std::int64_t classes = translates ? input.target_vocabulary : classifies ? input.classes : 0;
  const char* what = translates ? "target tokens" : "classes";
  // A vocabulary of the network may be larger than that of the data.
  if (classes > 0 && (translates ? output.back() < classes : output.back() != classes))
    return fmt::format("it has logits for {} {}, but the data has {}", output.back(), what, classes);
  for (const models::Node& node : network.graph.nodes) {
    if (!node.kind.starts_with("aten.embedding") || node.reads.size() < 2) continue;
    const auto weight = std::ranges::find(network.graph.tensors, node.reads[0], &models::StoredTensor::value);
    const models::ValueId tokens = node.reads[1];
    if (weight == network.graph.tensors.end() || tokens >= network.graph.inputs) continue;
    const std::int64_t vocabulary = tokens == 0 ? input.vocabulary : translates ? input.target_vocabulary : 1;
    if (vocabulary > weight->sizes.at(0))
      return fmt::format("its {} has {} rows, but the data has {} tokens{}", weight->name,
                         weight->sizes.at(0), vocabulary, windows ? "" : "; limit vocabulary_max_size");
  }
  return "";
}

models::InitialRule rule_from(const nlohmann::json& json) {
  using Kind = models::InitialRule::Kind;
  models::InitialRule rule;
  for (const auto& [name, kind] : std::map<std::string, Kind>{
           {"constant", Kind::constant}, {"uniform", Kind::uniform}, {"normal", Kind::normal}})
    if (json.contains(name)) {
      rule.kind = kind;
      rule.value = json.at(name).get<double>();
    }
  rule.mean = json.value("mean", 0.0);
  if (json.contains("zero_row")) rule.zero_row = json.at("zero_row").get<std::int64_t>();
  return rule;
}

bool fits(const models::InitialRule& rule, const models::StoredTensor& stored) {
  const bool row =
      !rule.zero_row || (!stored.sizes.empty() && *rule.zero_row >= 0 && *rule.zero_row < stored.sizes[0]);
  const bool constant = rule.kind == models::InitialRule::Kind::constant;
  return row && std::isfinite(rule.value) && std::isfinite(rule.mean) && (constant || rule.value >= 0);
}

// The graph with the rules of `extra/trainyard.json`, which `trainyard export` writes.
models::Graph with_rules(const Exported& network, const std::filesystem::path& path) try {
  const char* advice = "export it with `trainyard export FILE.py:FUNCTION`, or write initial = \"exported\"";
  if (network.metadata.empty())
    throw UserError(path.string() + " does not say how its weights are drawn", advice);
  models::Graph graph = network.graph;
  const auto rules = nlohmann::json::parse(network.metadata).at("initial");
  for (models::StoredTensor& stored : graph.tensors) {
    if (stored.role != models::StoredTensor::Role::parameter) continue;
    if (!rules.contains(stored.name) || rules.at(stored.name).is_null())
      throw UserError(fmt::format("{} does not say how {} is drawn, because the network's own code sets it",
                                  path.string(), stored.name),
                      "write initial = \"exported\": then all seeds start with the weights of the file");
    stored.initial = rule_from(rules.at(stored.name));
    if (!fits(*stored.initial, stored))
      throw UserError(fmt::format("{} has an impossible rule for {}", path.string(), stored.name), advice);
  }
  return graph;
} catch (const nlohmann::json::exception& error) {
  throw UserError(fmt::format("extra/trainyard.json of {} is damaged: {}", path.string(), error.what()),
                  "export the network again");
}

// The task of a network with its own loss is that of the file.
std::string data_task(const ExportedLine& line, const Exported& network) {
  return line.task == models::own_loss_task ? network.task : line.task;
}

// `graph`: that of the file with first weights of a seed; null if the line says all.
models::Model model_from(ExportedLine line, const std::shared_ptr<const ExportedFile>& file,
                         std::shared_ptr<const models::Graph> graph = nullptr) {
  line.task = data_task(line, file->content);
  models::Model model{.name = line.name,
                      .title = line.title,
                      .task = line.task,
                      .datasets = {},
                      .hyperparameters = {},
                      .about = "a network that PyTorch exported",
                      .graph = {},
                      .file = line.path.string(),
                      .sha256 = file->sha256,
                      .initial = line.initial,
                      .data_task = line.task,
                      .own_loss = file->content.own_loss};
  const models::Task& task = models::find_task(line.task);
  if (model.own_loss && task.target != models::Target::label) model.task = models::own_loss_task;
  const models::DataKind kind = kind_of(file->content, task);
  for (const models::Dataset& dataset : models::datasets())
    if (dataset.kind == kind) model.datasets.push_back(dataset.name);
  if (kind == models::DataKind::texts || kind == models::DataKind::text_pairs)
    model.text_form = text_form(file->content, kind);
  if (!graph)
    graph = std::make_shared<const models::Graph>(
        line.initial == "seed" ? with_rules(file->content, line.path) : file->content.graph);
  model.graph = [file, graph, line](const models::Hyperparameters&, const models::InputShape& input) {
    if (const std::string why = data_problem(file->content, models::find_task(line.task), input);
        !why.empty())
      throw UserError(fmt::format("the network of {} does not fit the data: {}", line.path.string(), why),
                      "export a network for this data, or choose another data set");
    return *graph;
  };
  return model;
}

}  // namespace

models::Model exported_model(const ExportedLine& line) {
  const auto file = read_once(line.path);
  if (const std::string why = task_problem(file->content, data_task(line, file->content)); !why.empty())
    throw UserError(
        fmt::format("the network of {} does not fit the task {}: {}", line.path.string(), line.task, why),
        "export a network that does, or correct `task`");
  return model_from(line, file);
}

void require_float32(const ExportedLine& line) {
  for (const models::StoredTensor& stored : read_once(line.path)->content.graph.tensors)
    if (stored.role == models::StoredTensor::Role::parameter && stored.requires_grad &&
        stored.dtype != models::Dtype::float32)
      throw UserError(fmt::format("{} of {} is not in float32", stored.name, line.path.string()),
                      "export it without --double; precision = \"float64\" trains it in float64");
}

namespace {

ExportedLine line_of(const Run& run) {
  return {run.model, run.declared.model_title, run.declared.task, run.exported->path, run.exported->initial};
}

void refuse_changed(const std::filesystem::path& file, const std::string& now, const std::string& planned) {
  if (now != planned)
    throw UserError(file.string() + " has changed since the run was planned",
                    "put the file back, or plan the experiment again");
}

// The model without first weights of a seed.
models::Model planned_model(const Run& run) {
  if (!run.exported) {
    models::Model model = models::find_model(run.model);
    model.task = models::task_of(model, run.data);
    return model;
  }
  models::Model model = exported_model(line_of(run));
  refuse_changed(run.exported->path, model.sha256, run.exported->sha256);
  return model;
}

std::filesystem::path seed_file_of(const std::filesystem::path& exported, std::uint64_t seed) {
  std::filesystem::path file = models::seed_file(exported, seed);
  std::error_code error;
  if (!std::filesystem::exists(file, error))
    throw UserError(
        fmt::format("{}: no weights for seed {}", file.string(), seed),
        fmt::format("export again with `trainyard export … --seeds {}`, or write initial = \"seed\"",
                    seed + 1));
  return file;
}

}  // namespace

std::string seed_weights(const models::Model& exported, std::uint64_t seed) {
  using Stamp = std::tuple<std::string, std::string, std::filesystem::file_time_type>;
  static std::mutex mutex;
  static std::map<Stamp, std::string> known;  // the runs of all strategies ask
  const std::filesystem::path file = seed_file_of(exported.file, seed);
  const std::lock_guard lock(mutex);
  std::string& sha256 = known[{file.string(), exported.sha256, std::filesystem::last_write_time(file)}];
  if (sha256.empty())
    sha256 = models::with_seed_weights(read_once(exported.file)->content.graph, file, exported.sha256).sha256;
  return sha256;
}

std::string checked_weights(const Run& run) {
  static std::mutex mutex;
  static std::map<std::string, models::WeightsFile> known;  // many runs begin with the same file
  const std::lock_guard lock(mutex);
  auto found = known.find(run.initial);
  if (found == known.end()) found = known.emplace(run.initial, models::read_weights_file(run.initial)).first;
  const std::string why =
      run.strategy.foreign() ? "" : models::weights_problem(graph_of(run, run.data.input), found->second);
  if (!why.empty())
    throw UserError(fmt::format("{} does not fit model \"{}\": {}", run.initial, run.model, why),
                    "name a file with the weights of this network, of the same sizes");
  return found->second.sha256;
}

models::Model model_of(const Run& run) {
  models::Model model = planned_model(run);
  if (!run.exported || run.exported->initial != "program") return model;
  const std::filesystem::path file = seed_file_of(run.exported->path, run.seed);
  const auto network = read_once(run.exported->path);
  models::SeedWeights weights = models::with_seed_weights(network->content.graph, file, model.sha256);
  refuse_changed(file, weights.sha256, run.exported->weights);
  return model_from(line_of(run), network, std::make_shared<const models::Graph>(std::move(weights.graph)));
}

std::string task_name(const Run& run) {
  return run.exported ? run.declared.task : models::task_of(models::find_model(run.model), run.data);
}

models::Graph graph_of(const Run& run, const models::InputShape& input) {
  return planned_model(run).graph(run.hyperparameters, input);
}

std::vector<std::int64_t> layers_to_split(const Run& run, const models::Graph& graph) {
  const std::string& source = run.strategy.tensor_source;
  models::TensorSplit split = tensor_split_of(run);
  if (source == "auto") return models::cheapest_split(graph, split.parts, split.batch);
  if (source != "given") split.layers = models::layers_with(graph, named_split(source).dimensions);
  models::graph_of_part(graph, split, 0);  // UserError if it is impossible
  return split.layers;
}

models::TensorSplit tensor_split_of(const Run& run) {
  return {run.strategy.tensor, run.strategy.tensor_split, run.global_batch / parts_of_batch(run)};
}

}  // namespace trainyard::experiments
