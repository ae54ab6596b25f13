#include "reports/verdicts/comparability.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include <fmt/format.h>

#include "base/named_row.h"
#include "base/text.h"
#include "experiments/run/strategies.h"
#include "reports/format/number_text.h"
#include "reports/format/words.h"

namespace trainyard::reports {

namespace {

using experiments::StatedTerms;

// The GPU model that the rank recorded (on a cluster only the rank has it), else the processor of the launch.
std::string processor_of(const db::RunEvidence& evidence, const db::RunEvidence::Rank& rank) {
  const auto gpu = rank.start.find("gpu");
  if (gpu == rank.start.end() || !gpu->is_object()) return evidence.processor;
  const auto model = gpu->find("model");
  return model != gpu->end() && model->is_string() ? model->get<std::string>() : evidence.processor;
}

// "cpu", or the kind of accelerator with its model: a Tesla K80 is not a Tesla P100.
std::string device_kind(const db::RunEvidence& evidence, const db::RunEvidence::Rank& rank) {
  const std::string kind = rank.device.substr(0, rank.device.find(':'));
  return kind.empty() || kind == "cpu" ? kind : fmt::format("{} {}", kind, processor_of(evidence, rank));
}

// The hashes of the layers, from all ranks or only from those of the first replica.
std::string weights_of(const db::RunEvidence& evidence, bool all_replicas) {
  std::map<std::string, std::string> hashes;
  for (const db::RunEvidence::Rank& rank : evidence.ranks) {
    const auto weights = rank.start.find("initial_weights");
    if (weights == rank.start.end() || !weights->is_object() || (rank.replica != 0 && !all_replicas))
      continue;
    for (const auto& [path, hash] : weights->items())
      hashes.emplace(path, hash.is_string() ? hash.get<std::string>() : hash.dump());
  }
  return experiments::weights_text(hashes);
}

// What the ranks of any program recorded. Numbers of samples are from the recorded weights.
void add_recorded(const db::RunEvidence& evidence, bool all_replicas, StatedTerms& terms) {
  std::set<std::string> threads, devices;
  for (const db::RunEvidence::Rank& rank : evidence.ranks) {
    if (rank.threads > 0) threads.insert(std::to_string(rank.threads));
    if (!rank.device.empty()) devices.insert(device_kind(evidence, rank));
  }
  const auto add = [&](const char* name, const std::string& text) {
    if (!text.empty()) terms[name] = text;
  };
  add("threads", joined(threads));
  add("device", joined(devices));
  add("initial_weights", weights_of(evidence, all_replicas));
  add("batches", experiments::batches_text(evidence.batches));
  for (const auto& [name, samples] : {std::pair("samples", evidence.samples_an_epoch),
                                      std::pair("validation_samples", evidence.validation_samples),
                                      std::pair("test_samples", evidence.test_samples)})
    if (samples > 0) terms[name] = plain_number(samples, 15);
}

void add_native_evidence(const db::RunEvidence& evidence, StatedTerms& terms) {
  std::set<std::string> versions, processors;
  for (const db::RunEvidence::Rank& rank : evidence.ranks) {
    processors.insert(processor_of(evidence, rank));
    versions.insert(fmt::format("trainyard {}, LibTorch {}", rank.trainyard_version, rank.libtorch_version));
  }
  terms["versions"] = joined(versions);
  terms["data_fingerprint"] = evidence.data_fingerprint;
  if (processors.empty()) processors.insert(evidence.processor);
  terms["machine"] = fmt::format("{} {}", evidence.host, joined(processors));
  add_recorded(evidence, false, terms);
  std::erase_if(terms, [](const auto& term) { return term.second.empty() || term.second == " "; });
}

// Terms from the `start` records of a foreign run's ranks. Ranks agree, else the run has failed
// (db/database/record_faults.h). Only the layers of their stage, threads and device differ between ranks.
void add_foreign_evidence(const db::RunEvidence& evidence, StatedTerms& terms) {
  for (const db::RunEvidence::Rank& rank : evidence.ranks)
    for (const auto& [name, text] : experiments::stated_by_start(rank.start)) terms.emplace(name, text);
  add_recorded(evidence, true, terms);
}

// What the first rank of a recorded script observed (docs/python.md), by its place in the record. Null if it did not.
nlohmann::json observed(const db::RunEvidence& evidence, const char* place) {
  const nlohmann::json::json_pointer pointer(std::string("/observed") + place);
  return !evidence.ranks.empty() && evidence.ranks.front().start.contains(pointer)
             ? evidence.ranks.front().start.at(pointer)
             : nlohmann::json();
}

// What a recorded script takes its data order from, the norm of its first gradient, and its batch normalisation.
void add_observed(const db::RunEvidence& evidence, RunTerms& terms) {
  if (const auto order = observed(evidence, "/order"); order.is_string())
    terms.order = order.get<std::string>();
  for (const char* name : {"/gradient_norms/0/before_clipping", "/gradient_norms/0/at_step"})
    if (const auto norm = observed(evidence, name);
        norm.is_number() && std::isnan(terms.first_gradient) && observed(evidence, "/fsdp").is_null())
      terms.first_gradient = norm.get<double>();
  if (const auto layers = observed(evidence, "/batch_norms"); layers.is_number() && layers > 0)
    terms.batch_statistics = evidence.ranks.size();
}

class Examiner {
 public:
  Examiner(const ReportData& data, const experiments::Compare& compare) : data_(data), compare_(compare) {}

  void take(const Observation& a, const Observation& b) {
    const db::RunSummary& baseline = *a.run;
    const db::RunSummary& arm = *b.run;
    const RunTerms first = terms_of(data_, baseline);
    const RunTerms second = terms_of(data_, arm);
    bool times_differ = take_settings(a, b);
    take_first_losses(first, second, pair_name(b, compare_));
    for (const auto& [terms, run] : {std::pair(&first, &baseline), std::pair(&second, &arm)}) {
      const bool is_silent =
          run->status == "failed" && terms->stated.empty();  // it ended before it stated anything
      if (terms->foreign && !is_silent)
        for (const std::string& title : experiments::not_stated(terms->stated))
          add_new(result_.not_stated, title);
    }
    if (first.foreign || second.foreign)
      for (const std::string& title : experiments::without_common_part(first.stated, second.stated, compare_))
        add_new(result_.not_stated, title);
    ++pairs_;
    for (experiments::TermDifference& difference :
         experiments::differing_terms(first.stated, second.stated, compare_)) {
      if (difference.by_axis) continue;
      if (difference.declare_as == "batches" && !first.order.empty() && !second.order.empty()) {
        difference.baseline += fmt::format(" ({})", first.order);
        difference.arm += fmt::format(" ({})", second.order);
      }
      times_differ = times_differ || (difference.only_times && !difference.declared);
      std::vector<std::string>& texts = difference.declared     ? result_.declared
                                        : difference.only_times ? result_.times_refused
                                                                : result_.refused;
      // Each difference once, with the values of the first pair that has it.
      if (seen_.insert(difference.title).second) texts.push_back(to_text(difference));
    }
    if (times_differ) ++pairs_without_times_;
    const std::string mesh = experiments::declared_mesh_difference(baseline.axes, arm.axes);
    if (!mesh.empty()) add_new(result_.declared, mesh);
    if (first.batch_statistics > 0 && second.batch_statistics > 0 &&
        first.batch_statistics != second.batch_statistics && second.term("batch_norm") == "local")
      add_new(result_.declared, std::string(experiments::split_batch_statistics));
  }

  Comparability result() {
    // Time verdicts leave out single pairs with another machine, build or environment. Times are refused only if
    // all pairs are such.
    if (pairs_without_times_ < pairs_ && !compare_.pair.empty()) result_.times_refused.clear();
    for (const auto& [setting, pairs] : pairs_by_setting_)
      result_.caveats.push_back({settings_mark, fmt::format("{} ({})", setting, joined(pairs))});
    if (!doubtful_.empty())
      result_.caveats.push_back(
          {doubtful_mark,
           fmt::format("the first weights are equal, but the training losses of epoch 1 are {}; a program "
                       "may record a mean as a sum",
                       joined(doubtful_))});
    if (!scaled_.empty())
      result_.caveats.push_back(
          {doubtful_mark,
           fmt::format(
               "the first weights and samples are equal, but the norms of the gradient at step 1 are {}; "
               "one arm may multiply its loss, for example by the number of processes",
               joined(scaled_))});
    return std::move(result_);
  }

 private:
  // Other settings change times, and may change the rounding of other values. Returns whether there are any.
  bool take_settings(const Observation& a, const Observation& b) {
    if (a.launched == nullptr || b.launched == nullptr) return false;
    const auto differing =
        experiments::differing_settings(a.launched->circumstances, b.launched->circumstances);
    for (const auto& difference : differing) {
      const std::string text = experiments::to_text(difference);
      add_new(result_.times_refused, text);
      pairs_by_setting_[text].push_back(pair_name(b, compare_));
    }
    return !differing.empty();
  }

  // The first gradients and the losses of the first epoch of equal networks are similar, whatever the strategy is.
  void take_first_losses(const RunTerms& first, const RunTerms& second, const std::string& pair) {
    const std::string weights = first.term("initial_weights");
    if (weights.empty() || weights != second.term("initial_weights")) return;
    const auto take = [&](double own, double other, double most, std::vector<std::string>& texts) {
      if (std::max(own / other, other / own) > most)
        texts.push_back(
            fmt::format("{} against {} ({})", plain_number(other, 3), plain_number(own, 3), pair));
    };
    // The first gradients differ by less, unless the loss is scaled: dropout and clipping change them a little.
    if (experiments::have_same_first_order(first.stated, second.stated))
      take(first.first_gradient, second.first_gradient, 1.25, scaled_);
    if (first.first_loss > 0 && second.first_loss > 0)
      take(first.first_loss, second.first_loss, 10, doubtful_);
  }

  const ReportData& data_;
  const experiments::Compare& compare_;
  std::map<std::string, std::vector<std::string>> pairs_by_setting_;
  std::vector<std::string> doubtful_, scaled_;
  Comparability result_;
  std::set<std::string> seen_;
  int pairs_ = 0;
  int pairs_without_times_ = 0;
};

// Evaluation of `probe` records. After each step the parity check records a rank's loss and, per layer, the
// norm of the reduced gradient, its distance from the reference (‖Δ‖) and a hash of the parameters.

using nlohmann::json;

// Largest accepted differences from the reference.
struct Tolerance {
  double loss;            // relative to the loss
  double gradient;        // relative to the norm of the layer's gradient
  double whole_gradient;  // added: relative to the norm of the whole gradient
};
constexpr Tolerance of_float32{1e-5, 1e-4, 1e-6};  // as in the parity table
// Values that differ in the last bits of float32 may be rounded to another bfloat16, 2⁻⁸ away.
constexpr Tolerance of_bfloat16{4e-3, 2e-2, 1e-3};
// The same for float16 and TF32, with steps of 2⁻¹¹.
constexpr Tolerance of_float16{5e-4, 2.5e-3, 1.25e-4};

// Gradient tolerance with synchronised batch normalisation, and with batch normalisation of split layers. What is summed
// over ranks is rounded differently. An activation may then change its sign, and a gradient differs by one sample's part.
constexpr double synchronised_gradient = 0.1;

Tolerance of_precision(const std::string& precision) {
  if (precision == "bfloat16") return of_bfloat16;
  return precision == "float16" || precision == "tf32" ? of_float16 : of_float32;
}

Tolerance tolerance_of(const db::RunSummary& run) {
  Tolerance tolerance = of_precision(value_of(run, "precision"));
  const bool sums_statistics = run.replicas > 1 && value_of(run, "batch_norm") == "sync";
  if (sums_statistics || (run.tensor > 1 && experiments::normalises_batches(run.axes)))
    tolerance.gradient = synchronised_gradient;
  return tolerance;
}

// Layers in the order of the chain.
json layers_of(const json& body) {
  return body.value("layers", json::array());
}

std::string path_of(const json& layer) {
  return layer.at("path").get<std::string>();
}

double number_member(const json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_number() ? found->get<double>() : std::nan("");
}

std::string after_step(const json& body) {
  const auto step = body.find("step");
  return step != body.end() && step->is_number_integer()
             ? fmt::format(" after step {}", step->get<std::int64_t>())
             : "";
}

std::string other_gradient(const json& body, const Tolerance& tolerance) {
  const double whole = number_member(body, "gradient_norm");  // of all stages
  for (const json& layer : layers_of(body)) {
    const double norm = number_member(layer, "gradient_norm");
    const double distance = number_member(layer, "difference");
    // A NaN distance passes here: the check of the loss finds it.
    if (distance > tolerance.gradient * norm + tolerance.whole_gradient * (std::isnan(whole) ? 0 : whole))
      return fmt::format("the gradient of layer {} differs from the reference{}", path_of(layer),
                         after_step(body));
  }
  return "";
}

std::string other_loss(const json& body, const Tolerance& tolerance) {
  const double loss = number_member(body, "loss");
  const double reference = number_member(body, "reference_loss");
  if (std::isnan(reference) || std::abs(loss - reference) <= tolerance.loss * std::abs(reference)) return "";
  return "the loss differs from the reference" + after_step(body);
}

// Checks that all ranks of a run with the same layer have the same parameters after the same step.
// `hashes`: those of earlier probes.
std::string other_parameters(const db::Probe& probe, std::map<std::string, json>& hashes) {
  for (const json& layer : layers_of(probe.body)) {
    const json hash = layer.value("parameter_hash", json());
    if (!hash.is_string() || hash == "") continue;
    const std::string where = path_of(layer) + after_step(probe.body);
    if (hashes.try_emplace(probe.run_key + where, hash).first->second != hash)
      return "replicas have different parameters in layer " + where;
  }
  return "";
}

// The first failure in the parity checks of an arm's runs: replicas with different parameters, or a loss or
// gradient that differs from the reference by more than the tolerance. Empty if there is none.
std::string broken_by_probes(const ReportData& data, const ArmRuns& arm) {
  std::map<std::string, json> hashes;
  for (const Observation& observation : arm.runs) {
    const auto* probes = value_or_null(data.probes, observation.run->run_key);
    if (probes == nullptr) continue;
    const Tolerance tolerance = tolerance_of(*observation.run);
    for (const db::Probe& probe : *probes) {
      if (!probe.body.is_object()) continue;
      for (const std::string& problem : {other_gradient(probe.body, tolerance),
                                         other_loss(probe.body, tolerance), other_parameters(probe, hashes)})
        if (!problem.empty()) return problem;
    }
  }
  return "";
}

}  // namespace

std::string refusal(const Comparability& found, const Metric& metric) {
  std::vector<std::string> reasons = found.refused;
  if (metric.kind->is_cost())
    reasons.insert(reasons.end(), found.times_refused.begin(), found.times_refused.end());
  return joined(reasons, {}, "; ");
}

std::string RunTerms::term(const std::string& name) const {
  const std::string* text = value_or_null(stated, name);
  return text == nullptr ? "" : *text;
}

RunTerms terms_of(const ReportData& data, const db::RunSummary& run) {
  const db::RunEvidence* evidence = value_or_null(data.evidence, run.run_key);
  if (evidence == nullptr) return {experiments::stated_by(run.axes), run.kind == "foreign"};
  RunTerms terms;
  terms.first_loss = evidence->first_loss;
  terms.foreign = experiments::strategy_or_null(evidence->strategy_kind) == nullptr;
  if (terms.foreign) {
    add_foreign_evidence(*evidence, terms.stated);
    add_observed(*evidence, terms);
  } else {
    terms.stated = experiments::stated_by(run.axes);
    add_native_evidence(*evidence, terms.stated);
  }
  return terms;
}

std::string pair_name(const Observation& observation, const experiments::Compare& compare) {
  if (compare.pair.empty()) return "run " + observation.run->run_key;
  if (compare.pair.size() == 1) return fmt::format("{} {}", compare.pair.front(), observation.pair);
  return observation.pair;
}

Comparability comparability_of(const ReportData& data, const experiments::Compare& compare,
                               const CellRuns& cell, const ArmRuns& arm) {
  if (data.of_file) {
    Comparability unknown;
    unknown.times_refused = {"times get no word, because host and load are not known"};
    unknown.not_stated = {"data", "initial weights", "data order", "host", "load of other processes"};
    return unknown;
  }
  experiments::Compare rules = compare;
  // Runs that are not paired have different seeds, so they differ in initial weights and data order.
  if (compare.pair.empty()) rules.differs.insert(rules.differs.end(), {"initial_weights", "batches"});
  Examiner examiner(data, rules);
  for (std::size_t i = 0; i < arm.runs.size(); ++i) {
    const Observation* partner = compared_with(cell.baseline, arm, i, !compare.pair.empty());
    if (partner != nullptr) examiner.take(*partner, arm.runs[i]);
  }
  Comparability result = examiner.result();
  if (compare.pair.empty())
    std::erase_if(result.declared, [](const std::string& text) {
      return text.starts_with("initial weights") || text.starts_with("data order");
    });
  result.broken = broken_by_probes(data, arm);
  if (result.broken.empty()) {
    const std::string of_baseline = broken_by_probes(data, cell.baseline);
    if (!of_baseline.empty()) result.broken = "the baseline: " + of_baseline;
  }
  return result;
}

// Probes of a foreign program do not count: trainyard did not compare anything.
bool has_parity_check(const ReportData& data, const ArmRuns& arm) {
  return std::ranges::any_of(arm.runs, [&](const Observation& run) {
    return run.run->kind != "foreign" && data.probes.contains(run.run->run_key);
  });
}

std::vector<std::string> not_probed(const ReportData& data, const std::vector<CellRuns>& cells) {
  std::vector<std::string> names;
  for (const CellRuns& cell : cells)
    for (const ArmRuns* arm : cell.compared())
      if (!arm->runs.empty() && !has_parity_check(data, *arm))
        names.push_back(fmt::format("{} {}", cell.label, arm->value));
  return names;
}

std::vector<std::string> broken_arms(const ReportData& data) {
  std::vector<experiments::Compare> compares = data.plan.compare;
  if (compares.empty()) compares.emplace_back();
  std::vector<std::string> lines;
  for (const experiments::Compare& compare : compares)
    for (const CellRuns& cell : make_cells(data, compare))
      for (const ArmRuns& arm : cell.arms) {
        const std::string broken = comparability_of(data, compare, cell, arm).broken;
        if (!broken.empty()) add_new(lines, fmt::format("{} {}: {}", cell.label, arm.value, broken));
      }
  return lines;
}

}  // namespace trainyard::reports
