#include "reports/verdicts/fairness_terms.h"

#include <algorithm>
#include <functional>
#include <set>

#include <fmt/format.h>

#include "base/text.h"
#include "reports/verdicts/comparability.h"

namespace trainyard::reports {

namespace {

using Texts = std::set<std::string>;

// One term over the pairs of all cells.
struct Shared {
  Texts values;      // that were stated
  Texts not_stated;  // arms that do not state it
  Texts in_part;     // arms that state it only for some of the layers or epochs
  Texts other;       // arms that contradict their partner
  int pairs = 0;
};

// Failed runs are in no verdict, and planned runs state nothing yet.
bool is_finished(const Observation& observation) {
  return observation.final != nullptr;
}

using PairVisitor =
    std::function<void(const ArmRuns&, const Observation&, const ArmRuns&, const Observation&)>;

// Visits the finished runs of paired arms pair by pair, of other arms run by run.
void for_each_pair(const std::vector<CellRuns>& cells, bool paired, const PairVisitor& visit) {
  for (const CellRuns& cell : cells)
    for (const ArmRuns& arm : cell.arms)
      for (std::size_t i = 0; i < arm.runs.size(); ++i) {
        const std::vector<Observation>& runs = cell.baseline.runs;
        const auto partner = paired         ? std::ranges::find(runs, arm.runs[i].pair, &Observation::pair)
                             : runs.empty() ? runs.end()
                                            : runs.begin() + static_cast<std::ptrdiff_t>(i % runs.size());
        if (partner == runs.end() || !is_finished(*partner) || !is_finished(arm.runs[i])) continue;
        visit(cell.baseline, *partner, arm, arm.runs[i]);
      }
}

std::string value_in(const RunTerms& terms, const std::string& name) {
  const auto found = terms.stated.find(name);
  return found == terms.stated.end() ? "" : found->second;
}

Texts lines_of(const std::string& text) {
  Texts lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    lines.insert(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

// The layers or epochs of the lines: "0.weight" of "0.weight 3fa9…".
Texts parts_of(const Texts& lines) {
  Texts parts;
  for (const std::string& line : lines) parts.insert(line.substr(0, line.rfind(' ')));
  return parts;
}

void compare_values(const std::string& baseline, const std::string& value, const std::string& arm,
                    Shared& shared) {
  const Texts first = lines_of(baseline);
  const Texts second = lines_of(value);
  if (first == second) return;
  // Several lines are hashes of layers or epochs. An arm may state only some of them.
  const bool partial = parts_of(first) != parts_of(second) && (first.size() > 1 || second.size() > 1);
  Texts all = first;
  all.insert(second.begin(), second.end());
  const bool contradicts = all.size() > parts_of(all).size();
  (partial && !contradicts ? shared.in_part : shared.other).insert(arm);
}

Shared shared_term(const ReportData& data, const experiments::Compare& compare,
                   const std::vector<CellRuns>& cells, const std::string& name) {
  Shared shared;
  const auto value_of_run = [&](const ArmRuns& arm, const Observation& observation) {
    const RunTerms terms = terms_of(data, *observation.run);
    std::string value = value_in(terms, name);
    if (value.empty() && name == "global_batch" && !terms.foreign)
      value = value_of(*observation.run, "batch");
    if (value.empty()) shared.not_stated.insert(arm.value);
    return value;
  };
  for_each_pair(cells, !compare.pair.empty(),
                [&](const ArmRuns& baseline, const Observation& a, const ArmRuns& arm, const Observation& b) {
                  ++shared.pairs;
                  const std::string first = value_of_run(baseline, a);
                  const std::string second = value_of_run(arm, b);
                  for (const std::string& value : {first, second})
                    if (!value.empty()) shared.values.insert(value);
                  if (!first.empty() && !second.empty()) compare_values(first, second, arm.value, shared);
                });
  return shared;
}

Statement statement_of(const Shared& shared, bool meant, const std::string& title, const std::string& same) {
  if (!shared.other.empty())
    return {meant ? Severity::note : Severity::unfair,
            fmt::format("{}: {}{} from the baseline{}", title, joined(shared.other),
                        shared.other.size() == 1 ? " differs" : " differ", meant ? ", as declared." : ".")};
  if (!shared.not_stated.empty())
    return {Severity::note, fmt::format("{}: not stated by {}.", title, joined(shared.not_stated))};
  if (!shared.in_part.empty())
    return {Severity::note, fmt::format("{}: stated only in part by {}.", title, joined(shared.in_part))};
  return {Severity::fair, same};
}

bool may_differ(const experiments::Compare& compare, const std::set<std::string>& names) {
  return names.contains(compare.axis) ||
         std::ranges::any_of(compare.differs, [&](const std::string& one) { return names.contains(one); });
}

Statement global_batch(const ReportData& data, const experiments::Compare& compare,
                       const std::vector<CellRuns>& cells) {
  const Shared shared = shared_term(data, compare, cells, "global_batch");
  if (!shared.other.empty())
    return {may_differ(compare, {"batch", "global_batch"}) ? Severity::note : Severity::unfair,
            "The global batch differs between the arms of a cell (" + joined(shared.values) + ")."};
  return statement_of(shared, false, "Global batch",
                      "The global batch is the same for all arms of a cell (" + joined(shared.values) + ").");
}

// Whether each replica used its part of a global batch. Replicas with a whole batch each would together have
// seen more samples than the baseline.
void replica_parts(const ReportData& data, const experiments::Compare& compare,
                   const std::vector<CellRuns>& cells, std::vector<Statement>& statements) {
  Texts shown;
  Texts foreign;
  Texts unknown;
  for_each_pair(cells, !compare.pair.empty(),
                [&](const ArmRuns&, const Observation& a, const ArmRuns& arm, const Observation& b) {
                  if (b.run->replicas <= 1) return;
                  const RunTerms terms = terms_of(data, *b.run);
                  const std::string samples = value_in(terms, "samples");
                  const bool same =
                      !samples.empty() && samples == value_in(terms_of(data, *a.run), "samples");
                  (terms.foreign ? foreign : same ? shown : unknown).insert(arm.value);
                });
  for (const std::string& arm : unknown) shown.erase(arm);
  if (!shown.empty())
    statements.push_back({Severity::fair, "In " + joined(shown) +
                                              ", each of N replicas gets 1/N of the global batch. All "
                                              "replicas together saw as many samples per epoch as the "
                                              "baseline."});
  if (!unknown.empty())
    statements.push_back({Severity::note, "The records do not show whether the replicas of " +
                                              joined(unknown) +
                                              " together saw as many samples as the "
                                              "baseline."});
  if (!foreign.empty())
    statements.push_back(
        {Severity::note, "Each replica's part of a global batch: not stated by " + joined(foreign) + "."});
}

}  // namespace

std::vector<Statement> term_statements(const ReportData& data, const experiments::Compare& compare,
                                       const std::vector<CellRuns>& cells) {
  std::vector<Statement> statements;
  int pairs = 0;
  for_each_pair(cells, !compare.pair.empty(), [&](auto&&...) { ++pairs; });
  if (pairs == 0) return statements;
  statements.push_back(global_batch(data, compare, cells));
  replica_parts(data, compare, cells, statements);
  // Initial weights depend on seed and model, so they are compared only if these are equal.
  const bool by_seed = std::ranges::find(compare.pair, "seed") != compare.pair.end();
  if (!by_seed) return statements;
  if (compare.axis != "model")
    statements.push_back(statement_of(
        shared_term(data, compare, cells, "initial_weights"), may_differ(compare, {"initial_weights"}),
        "Initial weights", "The runs of each pair start from the same weights (SHA-256 per layer)."));
  statements.push_back(statement_of(
      shared_term(data, compare, cells, "batches"),
      may_differ(compare, {"batches", "sampler", "batch", "global_batch", "train_samples"}), "Data order",
      "The runs of each pair use the same samples in the same order (SHA-256 per epoch)."));
  return statements;
}

Statement libtorch_statement(const ReportData& data) {
  Texts versions;
  Texts silent;
  for (const db::RunSummary& run : data.runs) {
    const auto found = data.evidence.find(run.run_key);
    if (run.status != "finished" || found == data.evidence.end()) continue;
    bool stated = !found->second.ranks.empty();
    for (const db::RunEvidence::Rank& rank : found->second.ranks) {
      stated = stated && !rank.libtorch_version.empty();
      if (!rank.libtorch_version.empty()) versions.insert(rank.libtorch_version);
    }
    if (!stated) silent.insert(run.strategy);
  }
  if (versions.size() > 1)
    return {Severity::unfair, "Runs used different versions of LibTorch (" + joined(versions) + ")."};
  if (!silent.empty()) return {Severity::note, "LibTorch: not stated by " + joined(silent) + "."};
  if (versions.empty()) return {Severity::note, "The version of LibTorch is not known."};
  return {Severity::fair, "All runs used the same LibTorch version (" + joined(versions) + ")."};
}

}  // namespace trainyard::reports
