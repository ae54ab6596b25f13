#include "experiments/design/contract.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <set>
#include <sstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/named_row.h"
#include "base/text.h"
#include "experiments/design/cell_place.h"
#include "experiments/run/keys.h"
#include "models/catalogue.h"

namespace trainyard::experiments {

namespace {

using Values = std::map<std::string, Value>;

std::vector<ContractTerm> make_terms() {
  // terms that do not belong to a single key
  std::vector<ContractTerm> terms{
      {"data_fingerprint", {"dataset", "data_fingerprint"}, "data fingerprint"},
      {"vocabulary", {}, "vocabulary"},
      {"global_batch", {"global_batch"}, "global batch (samples per step)"},
      {"device", {"device"}, "kind of device"},
      {"initial_weights", {"initial_weights"}, "initial weights"},
      {"batches",
       {"batches", "sampler", "batch", "global_batch", "train_samples", "dataset", "data_split"},
       "data order"},
      {"versions", {"versions"}, "versions"},
      {"samples",
       {"samples", "sampler", "train_samples", "dataset", "data_split"},
       "samples seen in an epoch"},
      {"validation_samples",
       {"validation_samples", "samples", "dataset", "data_split"},
       "validation samples"},
      {"test_samples", {"test_samples", "samples", "dataset", "data_split"}, "test samples"},
      {"machine", {"machine"}, "machine", true}};
  for (const Key& key : keys())
    if (!key.term.empty()) terms.push_back({key.parameter.name, {key.parameter.name}, key.term});
  for (const Key& key : keys())
    if (const auto whole = std::ranges::find(terms, key.part_of, &ContractTerm::name); whole != terms.end())
      whole->declared_by.push_back(key.parameter.name);
  return terms;
}

// Appends " name value" if the run has this value.
void append_value(std::string& to, const Values& values, const std::string& name) {
  if (const std::string value = value_text(values, name); !value.empty())
    to += fmt::format("{}{} {}", to.empty() ? "" : " ", name, value);
}

// The learning rate of the first step, as in `effective_learning_rate`. The text of a batch per replica
// contains " per ".
std::string learning_rate(const Values& values) {
  const std::string scaling = value_text(values, "learning_rate_scaling");
  const auto rate = values.find("learning_rate");
  const auto batch = values.find("global_batch");
  if (rate == values.end()) return "";
  const bool scaled = (scaling == "linear" || scaling == "sqrt") && batch != values.end();
  const std::string given = value_text(values, "batch");
  if (!scaled || given.find(" per ") == std::string::npos) return plain_text(rate->second);
  const double growth = static_cast<double>(std::get<std::int64_t>(batch->second)) / std::stod(given);
  return trainyard::to_text(std::get<double>(rate->second) *
                            (scaling == "linear" ? growth : std::sqrt(growth)));
}

const models::Model* model_of(const Values& values) {
  return row_or_null(models::catalogue(), &models::Model::name, value_text(values, "model"));
}

// Whether the model has batch normalisation. Only then does the split of a batch change the statistics.
bool averages_batches(const models::Model& model, const Values& values) {
  models::Hyperparameters hyperparameters;
  for (const Parameter& parameter : model.hyperparameters)
    if (const auto found = values.find(parameter.name); found != values.end())
      hyperparameters[parameter.name] = found->second;
  const auto* dataset =
      row_or_null(models::datasets(), &models::Dataset::name, value_text(values, "dataset"));
  if (dataset == nullptr || hyperparameters.size() < model.hyperparameters.size()) return false;
  const models::Graph graph = model.graph(hyperparameters, models::input_shape(*dataset));
  return std::ranges::any_of(graph.nodes, [](const models::Node& node) {
    return node.kind.find("batch_norm") != std::string::npos;
  });
}

bool allowed_by(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

bool is_hyperparameter_of_any(const std::string& name) {
  for (const models::Model& model : models::catalogue())
    for (const Parameter& parameter : model.hyperparameters)
      if (parameter.name == name) return true;
  return false;
}

// Whether the name is a parameter of a declared model: neither a value of every run nor a term.
bool is_own_parameter(const std::string& name) {
  return !is_run_value(name) && std::ranges::none_of(contract_terms(), [&](const ContractTerm& term) {
    return term.name == name || term.title == name;
  });
}

// The term of the table with this name, or a new one for a hyper-parameter.
ContractTerm term_named(const std::string& name) {
  const auto* found = row_or_null(contract_terms(), &ContractTerm::name, name);
  return found == nullptr ? ContractTerm{name, {name}, name} : *found;
}

// Whether the networks differ. Then the initial weights may differ too.
bool has_other_network(const std::vector<TermDifference>& differences) {
  return std::ranges::any_of(differences, [](const TermDifference& one) {
    return one.title == "model" || is_hyperparameter_of_any(one.title) || is_own_parameter(one.title);
  });
}

std::vector<std::string> term_lines(const StatedTerms& terms, const std::string& name) {
  const auto found = terms.find(name);
  if (found == terms.end()) return {};
  std::vector<std::string> lines;
  std::istringstream text(found->second);
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  return lines;
}

bool is_of_parts(const std::string& name) {
  return name == "initial_weights" || name == "batches";
}

// The lines of the layers or epochs that both state: "0.weight 3fa9…" of each.
std::vector<std::pair<std::string, std::string>> common_parts(const std::string& name,
                                                              const StatedTerms& baseline,
                                                              const StatedTerms& arm) {
  const auto part_of = [&](const std::string& line) {  // "0.weight", "epoch 1", "steps of epoch 1"
    constexpr std::string_view epoch = "epoch ";
    return line.substr(0, line.find(' ', name == "batches" ? line.find(epoch) + epoch.size() : 0));
  };
  std::map<std::string, std::string> others;
  for (const std::string& line : term_lines(arm, name)) others.emplace(part_of(line), line);
  std::vector<std::pair<std::string, std::string>> common;
  for (const std::string& line : term_lines(baseline, name))
    if (const auto other = others.find(part_of(line)); other != others.end())
      common.emplace_back(line, other->second);
  // The form of steps depends on the global batch, which is a term of its own.
  const auto is_of_steps = [](const auto& lines) { return lines.first.starts_with("steps of "); };
  if (name == "batches" && !std::ranges::all_of(common, is_of_steps)) std::erase_if(common, is_of_steps);
  return common;
}

TermDifference difference_of(const std::string& name, const std::string& baseline, const std::string& arm,
                             const Compare& compare) {
  const ContractTerm term = term_named(name);
  TermDifference difference;
  difference.title = term.title;
  difference.baseline = baseline;
  difference.arm = arm;
  difference.by_axis = allowed_by(term.declared_by, compare.axis) ||
                       (compare.axis == "model" &&
                        (name == "model" || is_hyperparameter_of_any(name) || is_own_parameter(name)));
  difference.declared =
      difference.by_axis || std::ranges::any_of(term.declared_by, [&](const std::string& one) {
        return allowed_by(compare.differs, one);
      });
  difference.only_times = term.only_times;
  difference.declare_as = term.declared_by.front();
  return difference;
}

// The text of a stated value. Numbers have the form of trainyard's own terms: 0.0005 and 5e-4 are equal.
std::string stated_text(const nlohmann::json& stated) {
  if (stated.is_string()) return stated.get<std::string>();
  return stated.is_number_float() ? trainyard::to_text(stated.get<double>()) : stated.dump();
}

// The terms that keys state: single values, or texts of several parts in the order of the keys.
StatedTerms stated_by_keys(const Values& values) {
  StatedTerms terms;
  for (const Key& key : keys()) {
    const std::string& name = key.parameter.name;
    if (!key.term.empty()) terms[name] = value_text(values, name);
    if (!key.part_of.empty()) append_value(terms[key.part_of], values, name);
  }
  return terms;
}

// Adds the precision and batch normalisation of the layers, which are known only for models of the catalogue.
void state_model(const models::Model& model, const Values& values, StatedTerms& terms) {
  for (const Parameter& parameter : model.hyperparameters)
    if (const std::string value = value_text(values, parameter.name); !value.empty())
      terms[parameter.name] = value;
  if (terms["batch_norm"] != "local" && !averages_batches(model, values)) terms["batch_norm"] = "local";
  if (terms["precision"].empty()) terms["precision"] = "float32";
}

// Adds the terms of a declared model. Each value that not every run has is a parameter of the model.
void state_own_model(const Values& values, StatedTerms& terms) {
  for (const char* name : {"batch_norm", "precision"}) terms.erase(name);
  for (const auto& [name, value] : values)
    if (!is_run_value(name)) terms[name] = plain_text(value);
}

}  // namespace

std::span<const ContractTerm> contract_terms() {
  static const std::vector<ContractTerm> terms = make_terms();
  return terms;
}

StatedTerms stated_by(const Values& values) {
  StatedTerms terms = stated_by_keys(values);
  terms.erase("threads");  // known after the launch
  if (!terms["dataset"].empty() && terms["train_samples"].empty()) terms["train_samples"] = "all";
  terms["global_batch"] = value_text(values, "global_batch");
  terms["learning_rate"] = learning_rate(values);
  terms["model"] = value_text(values, "model");
  if (const models::Model* model = model_of(values))
    state_model(*model, values, terms);
  else
    state_own_model(values, terms);
  std::erase_if(terms, [](const auto& term) { return term.second.empty(); });
  return terms;
}

StatedTerms stated_by_start(const nlohmann::json& start) {
  StatedTerms terms;
  if (!start.is_object()) return terms;
  for (const ContractTerm& term : contract_terms()) {
    const auto found = start.find(term.name);
    if (found == start.end() || found->is_null() || term.name == "batches") continue;  // `epoch` has batches
    if (found->is_object() && term.name == "initial_weights") {
      std::map<std::string, std::string> hashes;
      for (const auto& [path, hash] : found->items())
        hashes[path] = hash.is_string() ? hash.get<std::string>() : hash.dump();
      terms[term.name] = weights_text(hashes);
      continue;
    }
    terms[term.name] = stated_text(*found);
  }
  return terms;
}

std::string weights_text(const std::map<std::string, std::string>& hash_by_path) {
  std::vector<std::pair<std::string, std::string>> layers(hash_by_path.begin(), hash_by_path.end());
  // "2.weight" before "10.weight"
  std::ranges::stable_sort(layers, {}, [](const auto& layer) { return std::atoi(layer.first.c_str()); });
  std::string all;
  for (const auto& [path, hash] : layers) all += fmt::format("{}{} {}", all.empty() ? "" : "\n", path, hash);
  return all;
}

std::string batches_text(const std::map<std::int64_t, std::string>& hash_by_epoch) {
  std::string all;
  constexpr std::string_view of_steps = "steps:";
  const auto add = [&all](const char* form, std::int64_t epoch, std::string_view hash) {
    if (!hash.empty()) all += fmt::format("{}{}epoch {} {}", all.empty() ? "" : "\n", form, epoch, hash);
  };
  for (const auto& [epoch, hashes] : hash_by_epoch) {
    const std::size_t steps = std::min(hashes.find(of_steps), hashes.size());
    add("", epoch, trimmed(std::string_view(hashes).substr(0, steps)));
    if (steps < hashes.size())
      add("steps of ", epoch, std::string_view(hashes).substr(steps + of_steps.size()));
  }
  return all;
}

std::vector<std::string> not_stated(const StatedTerms& terms) {
  static constexpr std::array stated_by_own_programs{
      "data_fingerprint",       "epochs",    "global_batch", "optimizer", "learning_rate",
      "learning_rate_schedule", "precision", "batch_norm",   "threads",   "device",
      "initial_weights",        "batches"};
  std::vector<std::string> missing;
  for (const char* name : stated_by_own_programs)
    if (!terms.contains(name)) missing.push_back(term_named(name).title);
  return missing;
}

namespace {

// "3 replicas without a bound". Empty without asynchronous servers.
std::string asynchronous(const Values& values) {
  if (value_text(values, "mode") != "async") return "";
  const std::string bound = value_text(values, "staleness");
  return value_text(values, "replicas") + " replicas " +
         (bound.empty() ? "without a bound" : "with the bound " + bound);
}

std::string asynchronous_difference(const std::string& baseline, const std::string& arm) {
  if (baseline == arm) return "";
  if (baseline.empty()) return "asynchronous servers are another algorithm, with stale parameters: " + arm;
  if (arm.empty())
    return "asynchronous servers of the baseline are another algorithm, with stale parameters: " + baseline;
  return fmt::format("asynchronous servers have parameters of another staleness: {} against {}", arm,
                     baseline);
}

}  // namespace

bool normalises_batches(const Values& values) {
  const models::Model* model = model_of(values);
  return model != nullptr && averages_batches(*model, values);
}

std::string declared_mesh_difference(const Values& baseline, const Values& arm) {
  if (std::string text = asynchronous_difference(asynchronous(baseline), asynchronous(arm)); !text.empty())
    return text;
  const auto parts = [](const Values& values) {
    std::string all;
    for (const char* name : {"replicas", "micro_batches"}) append_value(all, values, name);
    return all;
  };
  if (value_text(arm, "batch_norm") == "sync" || parts(baseline) == parts(arm)) return "";
  return normalises_batches(arm) ? split_batch_statistics : "";
}

namespace {

// The text with at most 12 digits of each hash.
std::string with_short_hashes(const std::string& text) {
  constexpr std::size_t shown = 12, least = 32;
  std::string result, digits;
  const auto end_digits = [&] {
    result += digits.size() < least ? digits : digits.substr(0, shown) + "…";
    digits.clear();
  };
  for (const char c : text)
    if (std::isxdigit(static_cast<unsigned char>(c)) != 0) {
      digits += c;
    } else {
      end_digits();
      result += c;
    }
  end_digits();
  return result;
}

}  // namespace

std::string to_text(const TermDifference& difference) {
  return fmt::format("{} {} against {}", difference.title, with_short_hashes(difference.arm),
                     with_short_hashes(difference.baseline));
}

std::vector<TermDifference> differing_terms(const StatedTerms& baseline, const StatedTerms& arm,
                                            const Compare& compare) {
  std::vector<TermDifference> differences;
  for (const auto& [name, value] : baseline) {
    const auto other = arm.find(name);
    if (other != arm.end() && other->second != value && !is_of_parts(name))
      differences.push_back(difference_of(name, value, other->second, compare));
  }
  for (const std::string name : {"batches", "initial_weights"}) {
    if (name == "initial_weights" && has_other_network(differences)) break;
    const auto parts = common_parts(name, baseline, arm);
    const auto other =
        std::ranges::find_if(parts, [](const auto& part) { return part.first != part.second; });
    if (other != parts.end())  // the first layer or epoch with different hashes
      differences.push_back(difference_of(name, other->first, other->second, compare));
  }
  return differences;
}

std::vector<std::string> without_common_part(const StatedTerms& baseline, const StatedTerms& arm,
                                             const Compare& compare) {
  const bool other_network = has_other_network(differing_terms(baseline, arm, compare));
  std::vector<std::string> titles;
  for (const std::string name : {"initial_weights", "batches"}) {
    const bool may_differ =
        difference_of(name, "", "", compare).declared || (other_network && name == "initial_weights");
    if (!may_differ && baseline.contains(name) && arm.contains(name) &&
        common_parts(name, baseline, arm).empty())
      titles.push_back(term_named(name).title + " in a common form");
  }
  return titles;
}

bool have_same_first_order(const StatedTerms& one, const StatedTerms& other) {
  const auto common = common_parts("batches", one, other);
  return !common.empty() && common.front().first == common.front().second;
}

std::vector<std::string> contract_names() {
  std::set<std::string> names;
  for (const ContractTerm& term : contract_terms())
    names.insert(term.declared_by.begin(), term.declared_by.end());
  return {names.begin(), names.end()};
}

}  // namespace trainyard::experiments
