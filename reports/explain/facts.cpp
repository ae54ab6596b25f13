#include "reports/explain/facts.h"

#include <numeric>

#include <nlohmann/json.hpp>

#include "base/named_row.h"
#include "base/number.h"
#include "reports/verdicts/comparability.h"

namespace trainyard::reports {

namespace {

using nlohmann::json;

const json& member(const json& object, const char* name) {
  static const json nothing;
  const auto found = object.is_object() ? object.find(name) : object.end();
  return found == object.end() ? nothing : *found;
}

double number(const json& object, const char* name) {
  const json& found = member(object, name);
  return found.is_number() ? found.get<double>() : NAN;
}

std::optional<bool> truth(const json& object, const char* name) {
  const json& found = member(object, name);
  return found.is_boolean() ? std::optional(found.get<bool>()) : std::nullopt;
}

std::string text(const json& object, const char* name) {
  const json& found = member(object, name);
  return found.is_string() ? found.get<std::string>() : "";
}

std::vector<double> numbers(const json& object, const char* name) {
  const json& list = member(object, name);
  std::vector<double> found;
  if (list.is_array())
    for (const json& each : list) found.push_back(each.is_number() ? each.get<double>() : NAN);
  return found;
}

// One number per rank; none if the list has another length.
std::vector<double> of_ranks(const json& object, const char* name, std::size_t ranks) {
  std::vector<double> found = numbers(object, name);
  return found.size() == ranks ? found : std::vector<double>();
}

std::set<std::string> texts(const json& list) {
  std::set<std::string> found;
  if (list.is_array())
    for (const json& each : list)
      if (each.is_string()) found.insert(each.get<std::string>());
  return found;
}

void read_steps(const json& chain, Facts& facts) {
  if (!chain.is_array()) return;
  for (const json& each : chain) {
    if (!each.is_object()) continue;
    const double step = number(each, "step");
    facts.steps.push_back({.step = std::isfinite(step) ? static_cast<std::int64_t>(step) : 0,
                           .losses = of_ranks(each, "losses", facts.ranks),
                           .weights = of_ranks(each, "weights", facts.ranks),
                           .samples = of_ranks(each, "samples", facts.ranks),
                           .backwards = of_ranks(each, "backwards", facts.ranks),
                           .kept = of_ranks(each, "kept", facts.ranks),
                           .exchanges = of_ranks(each, "exchanges", facts.ranks),
                           .reduction = number(each, "reduction"),
                           .own = number(each, "own"),
                           .rest = number(each, "rest")});
  }
}

void read_probe(const json& probe, Facts& facts) {
  if (!probe.is_array()) return;
  for (const json& each : probe) {
    if (!each.is_object()) continue;
    const json& inside = member(each, "inside");
    facts.probe.push_back({.samples = numbers(each, "samples"),
                           .shares = numbers(each, "shares"),
                           .distance = number(each, "distance"),
                           .factor = number(each, "factor"),
                           .rest = number(each, "rest"),
                           .unexplained = number(each, "unexplained"),
                           .inside = number(inside, "rest"),
                           .own = number(inside, "own"),
                           .equal_weights = truth(each, "equal_weights").value_or(true),
                           .parameter = text(each, "parameter")});
  }
}

// Phases are compared between ranks, so all must have them.
void read_phases(const db::RunEvidence& evidence, Facts& facts) {
  for (const db::RunEvidence::Rank& rank : evidence.ranks) {
    std::map<std::string, double> medians;
    for (const auto& [name, value] : member(member(rank.start, "observed"), "phases").items())
      if (value.is_number()) medians[name] = value.get<double>();
    if (!medians.contains("step") || !medians.contains("own") || medians["step"] <= 0) {
      facts.phases.clear();
      return;
    }
    facts.phases.push_back(std::move(medians));
  }
}

void read_observed(const json& observed, Facts& facts) {
  if (!observed.is_object()) return;
  facts.recorded = true;
  read_steps(member(observed, "chain"), facts);
  read_probe(member(observed, "probe"), facts);
  facts.without_gradient = texts(member(observed, "without_gradient"));
  facts.same_in_fetch = texts(member(member(observed, "random"), "fetch"));
  facts.same_in_forward = texts(member(member(observed, "random"), "forward"));
  facts.overlap = number(observed, "overlap");
  facts.repeated = number(observed, "repeated");
  facts.unseen_model =
      text(member(observed, "missing"), "batches").starts_with("no forward pass of the model");
  facts.uncleared = member(observed, "uncleared") == true;
  facts.train_mode_passes = number(observed, "train_mode_passes");
  facts.eval_steps = number(observed, "eval_steps");
  facts.order = text(observed, "order");
  facts.rates = numbers(observed, "learning_rates");
  facts.equal_weights = truth(observed, "equal_weights");
  facts.equal_rates = truth(observed, "equal_rates");
  facts.equal_data = truth(observed, "equal_data");
  facts.epoch_samples = number(observed, "epoch_samples");
  facts.batch_norm_samples = number(observed, "batch_norm_samples");
  facts.gradient_bytes = number(observed, "gradient_bytes");
  facts.cores = number(observed, "cores");
  facts.steps_made = number(observed, "steps");
  facts.schedule_steps = number(observed, "scheduler_steps");
}

double as_number(const std::string& text) {
  return parse_number<double>(text).value_or(NAN);
}

}  // namespace

double Facts::step_samples() const {
  if (steps.empty() || steps.front().samples.empty()) return global_batch;
  const double samples = std::accumulate(steps.front().samples.begin(), steps.front().samples.end(), 0.0);
  return samples > 0 ? samples : NAN;
}

Facts facts_of(const ReportData& data, const db::RunSummary& run) {
  Facts facts;
  const db::RunEvidence* evidence = value_or_null(data.evidence, run.run_key);
  if (evidence == nullptr || evidence->ranks.empty()) return facts;
  facts.ranks = evidence->ranks.size();
  read_observed(member(evidence->ranks.front().start, "observed"), facts);
  if (!facts.recorded) return facts;
  read_phases(*evidence, facts);
  const RunTerms terms = terms_of(data, run);
  facts.initial_weights = terms.term("initial_weights");
  for (const char* name : compared_terms)
    if (const std::string value = terms.term(name); !value.empty()) facts.terms[name] = value;
  facts.terms.try_emplace("clip_norm", "none");  // it is stated only if something is clipped
  facts.schedule = terms.term("learning_rate_schedule");
  facts.epochs = as_number(terms.term("epochs"));
  facts.learning_rate = as_number(terms.term("learning_rate"));
  facts.global_batch = as_number(terms.term("global_batch"));
  facts.threads = static_cast<double>(evidence->ranks.front().threads);
  if (evidence->validation_samples > 0) facts.validation_weight = evidence->validation_samples;
  facts.order_known = evidence->batches.size() > 1;
  facts.repeats_order = facts.order_known;
  for (const auto& [epoch, hash] : evidence->batches)
    facts.repeats_order = facts.repeats_order && hash == evidence->batches.begin()->second;
  return facts;
}

}  // namespace trainyard::reports
