#include "reports/verdicts/comparability.h"

#include <algorithm>
#include <set>

#include "base/joined.h"
#include "experiments/run/keys.h"
#include "reports/format/number_text.h"

namespace trainyard::reports {

namespace {

using experiments::StatedTerms;

bool is_foreign(const db::RunEvidence& evidence) {
  const auto kinds = experiments::strategy_kinds();
  const auto found = std::ranges::find(kinds, evidence.strategy_kind, &experiments::StrategyKind::name);
  return found == kinds.end() || evidence.strategy_kind == "foreign";
}

// The GPU's model where the rank says it, as on a cluster only the rank can; else what the launch was for.
std::string processor_of(const db::RunEvidence& evidence, const db::RunEvidence::Rank& rank) {
  const auto gpu = rank.start.find("gpu");
  if (gpu == rank.start.end() || !gpu->is_object()) return evidence.processor;
  const auto model = gpu->find("model");
  return model != gpu->end() && model->is_string() ? model->get<std::string>() : evidence.processor;
}

// "cpu"; an accelerator by its model: a Tesla K80 is no Tesla P100.
std::string device_kind(const db::RunEvidence& evidence, const db::RunEvidence::Rank& rank) {
  const std::string kind = rank.device.substr(0, rank.device.find(':'));
  return kind.empty() || kind == "cpu" ? kind : kind + " " + processor_of(evidence, rank);
}

std::string weights_of(const db::RunEvidence& evidence) {
  std::map<std::string, std::string> hashes;
  for (const db::RunEvidence::Rank& rank : evidence.ranks) {
    const auto weights = rank.start.find("initial_weights");
    if (rank.replica != 0 || weights == rank.start.end() || !weights->is_object()) continue;
    for (const auto& [path, hash] : weights->items())
      if (hash.is_string()) hashes[path] = hash.get<std::string>();
  }
  return experiments::weights_text(hashes);
}

void add_native_evidence(const db::RunEvidence& evidence, StatedTerms& terms) {
  std::set<std::string> threads;
  std::set<std::string> devices;
  std::set<std::string> versions;
  std::set<std::string> processors;
  for (const db::RunEvidence::Rank& rank : evidence.ranks) {
    processors.insert(processor_of(evidence, rank));
    if (rank.threads > 0) threads.insert(std::to_string(rank.threads));
    devices.insert(device_kind(evidence, rank));
    versions.insert("trainyard " + rank.trainyard_version + ", LibTorch " + rank.libtorch_version);
  }
  terms["threads"] = models::joined(threads);
  terms["device"] = models::joined(devices);
  terms["versions"] = models::joined(versions);
  terms["data_fingerprint"] = evidence.data_fingerprint;
  terms["initial_weights"] = weights_of(evidence);
  terms["batches"] = experiments::batches_text(evidence.batches);
  if (processors.empty()) processors.insert(evidence.processor);
  terms["machine"] = evidence.host + " " + models::joined(processors);
  if (evidence.samples_an_epoch > 0) terms["samples"] = plain_number(evidence.samples_an_epoch, 15);
  std::erase_if(terms, [](const auto& term) { return term.second.empty() || term.second == " "; });
}

// What the `start` of its ranks says. They agree, or the run has failed (db/database/record_faults.h), but
// for what is a rank's own: the layers of its stage, and two members that have columns of their own.
StatedTerms foreign_evidence(const db::RunEvidence& evidence) {
  StatedTerms terms;
  std::set<std::string> threads;
  std::set<std::string> devices;
  std::map<std::string, std::string> weights;
  for (const db::RunEvidence::Rank& rank : evidence.ranks) {
    for (const auto& [name, text] : experiments::stated_by_start(rank.start)) terms.emplace(name, text);
    if (rank.threads > 0) threads.insert(std::to_string(rank.threads));
    if (!rank.device.empty()) devices.insert(device_kind(evidence, rank));
    if (!rank.start.is_object()) continue;
    const auto own = rank.start.find("initial_weights");
    if (own == rank.start.end() || !own->is_object()) continue;
    for (const auto& [path, hash] : own->items())
      weights.emplace(path, hash.is_string() ? hash.get<std::string>() : hash.dump());
  }
  if (!threads.empty()) terms["threads"] = models::joined(threads);
  if (!devices.empty()) terms["device"] = models::joined(devices);
  if (!weights.empty()) terms["initial_weights"] = experiments::weights_text(weights);
  if (!evidence.batches.empty()) terms["batches"] = experiments::batches_text(evidence.batches);
  return terms;
}

// A program that ended before it could state anything.
bool is_silent(const RunTerms& terms, const db::RunSummary& run) {
  return run.status == "failed" && terms.stated.empty();
}

class Examiner {
 public:
  Examiner(const ReportData& data, const experiments::Compare& compare) : data_(data), compare_(compare) {}

  void take(const db::RunSummary& baseline, const db::RunSummary& arm) {
    const RunTerms first = terms_of(data_, baseline);
    const RunTerms second = terms_of(data_, arm);
    for (const auto& [terms, run] : {std::pair(&first, &baseline), std::pair(&second, &arm)})
      if (terms->foreign && !is_silent(*terms, *run))
        for (const std::string& title : experiments::not_stated(terms->stated))
          add(result_.not_stated, title);
    ++pairs_;
    for (const experiments::TermDifference& difference :
         experiments::differing_terms(first.stated, second.stated, compare_)) {
      if (difference.by_axis) continue;
      if (difference.declared) {
        add_once(result_.declared, difference);
      } else if (difference.only_times) {
        other_machines_ += 1;
        add_once(result_.times_refused, difference);
      } else {
        add_once(result_.refused, difference);
      }
    }
    const std::string mesh = experiments::declared_mesh_difference(baseline.axes, arm.axes);
    if (!mesh.empty()) add(result_.declared, mesh);
  }

  Comparability result() {
    // single pairs on another machine are left out of time verdicts; here it is all of them
    if (other_machines_ < pairs_) result_.times_refused.clear();
    return std::move(result_);
  }

 private:
  static void add(std::vector<std::string>& texts, const std::string& text) {
    if (std::ranges::find(texts, text) == texts.end()) texts.push_back(text);
  }

  // With the numbers of the first pair that shows it.
  void add_once(std::vector<std::string>& texts, const experiments::TermDifference& difference) {
    if (seen_.insert(difference.title).second) texts.push_back(to_text(difference));
  }

  const ReportData& data_;
  const experiments::Compare& compare_;
  Comparability result_;
  std::set<std::string> seen_;
  int pairs_ = 0;
  int other_machines_ = 0;
};

}  // namespace

RunTerms terms_of(const ReportData& data, const db::RunSummary& run) {
  const auto found = data.evidence.find(run.run_key);
  if (found == data.evidence.end()) return {experiments::stated_by(run.axes), run.kind == "foreign", false};
  const db::RunEvidence& evidence = found->second;
  if (is_foreign(evidence)) return {foreign_evidence(evidence), true, true};
  RunTerms terms{experiments::stated_by(run.axes), false, true};
  add_native_evidence(evidence, terms.stated);
  return terms;
}

Comparability comparability_of(const ReportData& data, const experiments::Compare& compare, const Cell& cell,
                               const Arm& arm) {
  experiments::Compare rules = compare;
  // runs that are not pairs have seeds, and so weights and an order of the data, of their own
  if (compare.pair.empty()) rules.differs.insert(rules.differs.end(), {"initial_weights", "batches"});
  Examiner examiner(data, rules);
  for (std::size_t i = 0; i < arm.runs.size(); ++i) {
    const Observation& run = arm.runs[i];
    if (compare.pair.empty()) {
      if (!cell.baseline.runs.empty())
        examiner.take(*cell.baseline.runs[i % cell.baseline.runs.size()].run, *run.run);
      continue;
    }
    const auto partner = std::ranges::find(cell.baseline.runs, run.pair, &Observation::pair);
    if (partner != cell.baseline.runs.end()) examiner.take(*partner->run, *run.run);
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

}  // namespace trainyard::reports
