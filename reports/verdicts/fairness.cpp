#include "reports/verdicts/fairness.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "base/text.h"
#include "reports/format/number_text.h"
#include "reports/format/words.h"
#include "reports/results/metrics.h"
#include "reports/verdicts/comparability.h"

namespace trainyard::reports {

namespace {

using Texts = std::set<std::string>;

struct ComparedRun {
  const std::string& arm;
  const Observation& seen;
};

// The runs of the baselines and arms of these cells.
std::vector<ComparedRun> runs_of(std::span<const CellRuns> cells) {
  std::vector<ComparedRun> runs;
  const auto add = [&](const ArmRuns& arm) {
    for (const Observation& seen : arm.runs) runs.push_back({arm.value, seen});
  };
  for (const CellRuns& cell : cells) {
    add(cell.baseline);
    std::ranges::for_each(cell.arms, add);
  }
  return runs;
}

// Two finished runs that are compared, and what they state. Failed runs are in no verdict, and planned runs
// state nothing yet.
struct ComparedPair {
  const std::string& baseline_arm;
  const std::string& arm;
  const db::RunSummary& run;  // of the arm
  RunTerms baseline_terms, terms;
};

RunTerms terms_with_batch(const ReportData& data, const db::RunSummary& run) {
  RunTerms terms = terms_of(data, run);
  std::string& batch = terms.stated["global_batch"];
  if (batch.empty() && !terms.foreign) batch = value_of(run, "batch");
  return terms;
}

// Arms that are not paired are compared run by run.
std::vector<ComparedPair> pairs_of(const ReportData& data, const std::vector<CellRuns>& cells, bool paired) {
  std::vector<ComparedPair> pairs;
  for (const CellRuns& cell : cells)
    for (const ArmRuns& arm : cell.arms)
      for (std::size_t i = 0; i < arm.runs.size(); ++i) {
        const std::vector<Observation>& runs = cell.baseline.runs;
        const auto partner = paired         ? std::ranges::find(runs, arm.runs[i].pair, &Observation::pair)
                             : runs.empty() ? runs.end()
                                            : runs.begin() + static_cast<std::ptrdiff_t>(i % runs.size());
        if (partner == runs.end() || partner->final == nullptr || arm.runs[i].final == nullptr) continue;
        const db::RunSummary& run = *arm.runs[i].run;
        pairs.push_back({cell.baseline.value, arm.value, run, terms_with_batch(data, *partner->run),
                         terms_with_batch(data, run)});
      }
  return pairs;
}

std::string value_in(const RunTerms& terms, const std::string& name) {
  const auto found = terms.stated.find(name);
  return found == terms.stated.end() ? "" : found->second;
}

// A term that both runs of a pair must share.
struct Term {
  const char* name;
  const char* title;
  const char* same;                   // the text if all pairs agree
  bool has_short_values;              // they are shown
  bool needs_seeds;                   // compared only if arms are paired by seed
  std::set<std::string> declared_by;  // axes and declared names with which the term may differ
};

const std::array<Term, 3>& shared_terms() {
  static const std::array<Term, 3> terms{
      {{"global_batch",
        "Global batch",
        "the same for all arms of a cell",
        true,
        false,
        {"batch", "global_batch"}},
       {"initial_weights",
        "Initial weights",
        "the same for the runs of each pair (SHA-256 per layer)",
        false,
        true,
        {"initial_weights"}},
       {"batches",
        "Data order",
        "the runs of each pair use the same samples in the same order (SHA-256 per epoch)",
        false,
        true,
        {"batches", "sampler", "batch", "global_batch", "train_samples"}}}};
  return terms;
}

// What the pairs state on one term.
struct Stated {
  Texts values;
  Texts not_stated;  // arms that do not state it
  Texts in_part;     // arms that state it only for some of the layers or epochs
  Texts other;       // arms that contradict their partner
};

// Values by layer or epoch: "0.weight" → "3fa9…". The name of a value without parts is empty.
std::map<std::string, std::string> parts_of(const std::string& text) {
  std::map<std::string, std::string> parts;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string line = text.substr(begin, end - begin);
    const std::size_t space = line.rfind(' ');
    parts[space == std::string::npos ? "" : line.substr(0, space)] = line;
    begin = end + 1;
  }
  return parts;
}

Stated stated_by(const std::vector<ComparedPair>& pairs, const std::string& name) {
  Stated stated;
  for (const ComparedPair& pair : pairs) {
    const std::string first = value_in(pair.baseline_terms, name);
    const std::string second = value_in(pair.terms, name);
    (first.empty() ? stated.not_stated : stated.values).insert(first.empty() ? pair.baseline_arm : first);
    (second.empty() ? stated.not_stated : stated.values).insert(second.empty() ? pair.arm : second);
    const auto of_baseline = parts_of(first);
    const auto of_arm = parts_of(second);
    if (first.empty() || second.empty() || of_baseline == of_arm) continue;
    const bool contradicts = std::ranges::any_of(of_arm, [&](const auto& part) {
      const auto found = of_baseline.find(part.first);
      return found != of_baseline.end() && found->second != part.second;
    });
    const bool partial = of_baseline.size() > 1 || of_arm.size() > 1;
    (partial && !contradicts ? stated.in_part : stated.other).insert(pair.arm);
  }
  return stated;
}

Statement term_statement(const Term& term, const Stated& stated, bool declared) {
  const std::string values = term.has_short_values ? " (" + joined(stated.values) + ")" : "";
  const auto line = [&](Severity severity, const std::string& text) {
    return Statement{severity, fmt::format("{}: {}.", term.title, text)};
  };
  if (!stated.other.empty())
    return line(declared ? Severity::note : Severity::unfair,
                fmt::format("{} {} from the baseline{}{}", joined(stated.other),
                            stated.other.size() == 1 ? "differs" : "differ", values,
                            declared ? ", as declared" : ""));
  if (!stated.not_stated.empty()) return line(Severity::note, "not stated by " + joined(stated.not_stated));
  if (!stated.in_part.empty())
    return line(Severity::note, "stated only in part by " + joined(stated.in_part));
  return line(Severity::fair, term.same + values);
}

// Whether each replica used its part of a global batch. Replicas with a whole batch each would together have
// seen more samples than the baseline.
void add_replica_parts(const std::vector<ComparedPair>& pairs, std::vector<Statement>& statements) {
  Texts shown, foreign, unknown;
  for (const ComparedPair& pair : pairs) {
    if (pair.run.replicas <= 1) continue;
    const std::string samples = value_in(pair.terms, "samples");
    const bool same = !samples.empty() && samples == value_in(pair.baseline_terms, "samples");
    (pair.terms.foreign ? foreign : same ? shown : unknown).insert(pair.arm);
  }
  for (const std::string& arm : unknown) shown.erase(arm);
  const auto add = [&](Severity severity, const Texts& arms, const char* before, const char* after) {
    if (!arms.empty())
      statements.push_back({severity, fmt::format("Replicas: {} {}{}.", before, joined(arms), after)});
  };
  add(Severity::fair, shown, "each of the N replicas of",
      " gets 1/N of the global batch. Together they saw as many samples per epoch as the baseline");
  add(Severity::note, unknown, "the records do not show whether those of",
      " together saw as many samples as the baseline");
  add(Severity::note, foreign, "their parts of the global batch are not stated by", "");
}

void add_terms(const ReportData& data, const experiments::Compare& compare,
               const std::vector<CellRuns>& cells, std::vector<Statement>& statements) {
  const std::vector<ComparedPair> pairs = pairs_of(data, cells, !compare.pair.empty());
  if (pairs.empty()) return;
  const bool by_seed = std::ranges::find(compare.pair, "seed") != compare.pair.end();
  for (const Term& term : shared_terms()) {
    if (term.needs_seeds && !by_seed) continue;
    if (compare.axis == "model" && term.name == std::string("initial_weights")) continue;
    const bool declared = term.declared_by.contains(compare.axis) ||
                          std::ranges::any_of(compare.differs, [&](const std::string& name) {
                            return term.declared_by.contains(name);
                          });
    statements.push_back(term_statement(term, stated_by(pairs, term.name), declared));
  }
  add_replica_parts(pairs, statements);
}

Statement pairing(const std::vector<CellRuns>& cells, const experiments::Compare& compare) {
  if (compare.pair.empty())
    return {Severity::note, "Arms are not paired, as set in the experiment file. Welch's t test is used."};
  const std::string by = all_of(compare.pair);
  std::set<std::size_t> counts;
  bool same = true;
  for (const CellRuns& cell : cells) {
    std::map<std::string, Texts> pairs;
    for (const ComparedRun& one : runs_of({&cell, 1})) pairs[one.arm].insert(one.seen.pair);
    for (const auto& [arm, values] : pairs) {
      same = same && values == pairs.begin()->second;
      counts.insert(values.size());
    }
  }
  if (!same)
    return {Severity::unfair,
            "Not all arms have the same values of " + by + ". Runs without a partner are left out."};
  const std::string number = counts.size() > 1 ? "values" : counted(*counts.begin(), "value");
  return {Severity::fair, fmt::format("All arms of a cell have the same {} of {}. Differences are computed "
                                      "per pair.",
                                      number, by)};
}

Statement warm_up(const std::vector<ComparedRun>& runs) {
  std::optional<std::int64_t> fewest;
  for (const ComparedRun& one : runs)
    if (const db::FinalMetrics* final = one.seen.final; final != nullptr)
      fewest = std::min(fewest.value_or(final->epochs), final->epochs);
  if (!fewest) return {Severity::note, "No run has finished yet."};
  if (*fewest >= 3)
    return {Severity::fair, "Epoch 1 (warm-up) is shown in figures but left out of time verdicts."};
  return {Severity::unfair,
          "Some runs have fewer than 3 epochs. Their time verdicts include the warm-up epoch. Use 3 epochs "
          "or more."};
}

// The three most frequent reasons: "3 runs: other runs shared the host; 1 run: …".
std::string reasons_text(const std::map<std::string, int>& runs_by_reason) {
  std::vector<std::pair<std::string, int>> sorted(runs_by_reason.begin(), runs_by_reason.end());
  std::ranges::stable_sort(sorted, std::ranges::greater{}, &std::pair<std::string, int>::second);
  const std::size_t shown = std::min<std::size_t>(3, sorted.size());
  std::vector<std::string> texts;
  for (const auto& [reason, runs] : std::span(sorted).first(shown))
    texts.push_back(counted(runs, "run") + ": " + reason);
  if (sorted.size() > shown)
    texts.push_back(counted(sorted.size() - shown, "further reason") + " in `trainyard show`");
  return joined(texts, {}, "; ");
}

// Whether the times of the finished runs count.
Statement times(const std::vector<ComparedRun>& runs) {
  int finished = 0, flagged = 0, not_recorded = 0;
  std::map<std::string, int> problems;
  double most_taken = 0;  // largest share of cores taken by other processes, over runs that count
  for (const ComparedRun& one : runs) {
    if (one.seen.final == nullptr) continue;
    const db::FinalMetrics& final = *one.seen.final;
    ++finished;
    if (!final.times_count) {
      ++flagged;
      ++problems[final.times_problem.empty() ? "the host or a device was shared" : final.times_problem];
    } else if (std::isnan(final.other_share)) {
      ++not_recorded;
    } else {
      most_taken = std::max(most_taken, final.other_share);
    }
  }
  if (finished == 0) return {Severity::note, "No times are known yet."};
  if (flagged > 0)
    return {Severity::unfair, fmt::format("The times of {} of {} are flagged and not used in verdicts ({}).",
                                          counted(flagged, "run"), finished, reasons_text(problems))};
  if (not_recorded > 0)
    return {Severity::note,
            fmt::format("It is not known whether every finished run had its devices to itself. "
                        "The load of other processes was not recorded for {}.",
                        counted(not_recorded, "run"))};
  return {Severity::fair, fmt::format("Every finished run was the only timed run on its host and had its "
                                      "devices to itself. Other processes took at most {} % of the leased "
                                      "cores.",
                                      plain_number(std::round(1000 * most_taken) / 10))};
}

// Whether all ranks of a cell, also those of the baseline, have the same number of cores.
Statement cores(const std::vector<CellRuns>& cells, const experiments::Compare& compare) {
  Texts all;
  bool same = true;
  bool pinned = true;
  for (const CellRuns& cell : cells) {
    Texts of_cell;
    for (const ComparedRun& one : runs_of({&cell, 1})) {
      const Launched* launched = one.seen.launched;
      if (launched == nullptr) continue;
      pinned = pinned && !launched->cores.empty();
      for (const std::size_t count : launched->cores) {
        pinned = pinned && count > 0;
        of_cell.insert(count == 0 ? "0 cores"
                                  : counted(count, "core") + " for " +
                                        counted(launched->circumstances.threads_per_rank, "thread"));
      }
    }
    same = same && of_cell.size() <= 1;
    all.merge(of_cell);
  }
  if (!same)
    return {compare.axis == "threads" ? Severity::note : Severity::unfair,
            "Ranks do not all have the same number of cores (" + joined(all) + ")."};
  if (all.empty() || !pinned)
    return {Severity::note, "Ranks are not pinned to cores, or pinning was not recorded."};
  return {Severity::fair,
          "Each rank is pinned to " + joined(all, {}, " or ") +
              ". A run on one device has the same resources as one rank of a distributed run."};
}

Statement machines(const ReportData& data) {
  Texts hosts, releases;
  std::map<std::string, Texts> settings;  // that differ
  bool recorded = true;
  for (const auto& [key, launched] : data.launched) {
    const experiments::Circumstances& circumstances = launched.circumstances;
    hosts.insert(circumstances.host + " " + circumstances.processor);
    releases.insert(circumstances.release);
    recorded = recorded && !circumstances.build.empty();
    for (const auto& difference :
         experiments::differing_settings(data.launched.begin()->second.circumstances, circumstances))
      settings[difference.name].merge(Texts{difference.first, difference.second});
  }
  if (hosts.empty()) return {Severity::note, "The machines of the runs are not known."};
  if (hosts.size() > 1 || releases.size() > 1)
    return {Severity::unfair,
            "Runs used different machines or releases. Times are compared only if both are the same."};
  const auto text = [](const auto& setting) { return setting.first + ": " + joined(setting.second); };
  if (!settings.empty())
    return {Severity::unfair, "Runs used different settings (" + joined(settings, text) +
                                  "). Times are compared only if these are the same."};
  if (!recorded)
    return {Severity::note,
            "All runs used the same machine and the same release of trainyard. Their build and "
            "environment were not recorded."};
  return {Severity::fair,
          "All runs used the same machine, the same build of trainyard and the same environment."};
}

// Covers all finished runs that have records, compared or not.
Statement libtorch(const ReportData& data) {
  Texts versions, not_stated;
  for (const db::RunSummary& run : data.runs) {
    const auto found = data.evidence.find(run.run_key);
    if (run.status != "finished" || found == data.evidence.end()) continue;
    if (found->second.ranks.empty()) not_stated.insert(run.strategy);
    for (const db::RunEvidence::Rank& rank : found->second.ranks)
      rank.libtorch_version.empty() ? not_stated.insert(run.strategy)
                                    : versions.insert(rank.libtorch_version);
  }
  if (versions.size() > 1) return {Severity::unfair, "LibTorch: versions differ (" + joined(versions) + ")."};
  if (!not_stated.empty()) return {Severity::note, "LibTorch: not stated by " + joined(not_stated) + "."};
  if (versions.empty()) return {Severity::note, "LibTorch: the version is not known."};
  return {Severity::fair, "LibTorch: " + *versions.begin() + " in all runs."};
}

// Whether all arms had a parity check. Its failures are in `contract_statements`.
Statement parity(const ReportData& data, const std::vector<CellRuns>& cells) {
  const std::vector<std::string> unknown = not_probed(data, cells);
  if (unknown.empty())
    return {Severity::fair,
            "The first steps of each arm were compared with a single process before the arm was timed."};
  return {Severity::note, "No parity check: " + joined(Texts(unknown.begin(), unknown.end())) +
                              ". It is not known whether they train like a single device."};
}

// An option, other than the batch, that makes a distributed run another training than a single-device run.
struct TrainingOption {
  const char* name;
  const char* usual;
  Severity severity;
  const char* text;  // if some runs have other values
};
constexpr std::array<TrainingOption, 2> training_options{
    {{"sampler", "exact", Severity::unfair,
      "Sampler: {} in some runs. It pads the replicas' parts to equal size, so some samples are used twice."},
     {"learning_rate_scaling", "none", Severity::note,
      "Learning rate: scaled with the global batch in some runs ({})."}}};

// Options and data of our own runs. Foreign programs read their own data and may use other values than the
// file.
void add_changed_training(const std::vector<ComparedRun>& runs, std::vector<Statement>& statements) {
  std::map<std::string, Texts> values;
  Texts stand_ins, data_sets;
  for (const ComparedRun& one : runs) {
    const db::RunSummary& run = *one.seen.run;
    if (run.kind == "foreign") continue;
    for (const TrainingOption& option : training_options)
      if (const std::string value = value_of(run, option.name); !value.empty() && value != option.usual)
        values[option.name].insert(value);
    if (run.data_source.empty() || run.data_source == run.dataset) continue;
    stand_ins.insert(run.data_source + " instead of " + run.dataset);
    data_sets.insert(run.dataset);
  }
  for (const TrainingOption& option : training_options)
    if (values.contains(option.name))
      statements.push_back(
          {option.severity, fmt::format(fmt::runtime(option.text), joined(values[option.name]))});
  if (!stand_ins.empty())
    statements.push_back({Severity::unfair, fmt::format("Stand-in data: {}. The results do not apply to {}.",
                                                        joined(stand_ins), joined(data_sets))});
}

// Failed runs, also of the machine's limits: one statement per reason, with an example.
void add_failed_runs(const ReportData& data, const std::vector<CellRuns>& cells,
                     std::vector<Statement>& statements) {
  std::map<std::string, Texts> names_by_reason;
  const auto add = [&](const Observation& seen) {
    if (seen.run->status == "failed")
      names_by_reason[seen.run->failure].insert(name_of(*seen.run, title_of(*seen.run), data.plan.varied));
  };
  for (const ComparedRun& one : runs_of(cells)) add(one.seen);
  for (const CellRuns& cell : cells)
    for (const ArmRuns& limit : cell.limits) std::ranges::for_each(limit.runs, add);
  for (const auto& [reason, names] : names_by_reason) {
    const std::string count = names.size() == 1 ? "" : counted(names.size(), "run") + ", for example ";
    statements.push_back({Severity::unfair, fmt::format("Failed and left out: {}{}{}{}.", reason,
                                                        reason.empty() ? "" : ": ", count, *names.begin())});
  }
}

bool is_compared(const CellRuns& cell) {
  return !cell.baseline.runs.empty() && !cell.arms.empty();
}

}  // namespace

std::vector<Statement> fairness_statements(const ReportData& data, const experiments::Compare& compare,
                                           const std::vector<CellRuns>& cells) {
  const bool compared = std::ranges::any_of(cells, is_compared);
  const std::vector<ComparedRun> runs = runs_of(cells);
  std::vector<Statement> statements;
  if (compared) {
    statements.push_back(pairing(cells, compare));
    add_terms(data, compare, cells, statements);
  }
  for (const Statement& statement : {warm_up(runs), times(runs), cores(cells, compare), machines(data),
                                     libtorch(data), parity(data, cells)})
    statements.push_back(statement);
  add_changed_training(runs, statements);
  add_failed_runs(data, cells, statements);
  if (compared)
    statements.push_back(
        {Severity::note, fmt::format("p-values are corrected for the number of cells of one metric and arm "
                                     "(Holm, α = {}{}). The intervals shown are not corrected.",
                                     plain_number(compare.alpha),
                                     compare.final_look ? ", one look" : ", 0.8 α for the first look")});
  return statements;
}

std::vector<Statement> contract_statements(const std::vector<CellVerdicts>& cells) {
  // Arms by severity, word and reasons.
  std::vector<std::pair<std::tuple<Severity, std::string, std::string>, std::vector<std::string>>> lines;
  for (const CellVerdicts& judged : cells)
    for (std::size_t i = 0; i < judged.cell.arms.size(); ++i) {
      const std::string& value = judged.cell.arms[i].value;
      const Comparability& found = judged.comparability[i];
      const auto add = [&](Severity severity, const std::string& word,
                           const std::vector<std::string>& texts) {
        if (texts.empty()) return;
        const std::string reasons = joined(Texts(texts.begin(), texts.end()), {}, "; ");
        std::vector<std::string>& arms = value_of_key(lines, std::tuple(severity, word, reasons));
        const std::string arm = judged.cell.label + " " + value;
        if (arms.empty() || arms.back() != arm) arms.push_back(arm);
      };
      if (!found.broken.empty()) add(Severity::unfair, "BROKEN", {found.broken});
      add(Severity::unfair, "NOT COMPARABLE", found.refused);
      add(Severity::unfair, "Times NOT COMPARABLE", found.times_refused);
      for (const TestedVerdict& verdict : judged.verdicts)
        if (verdict.arm == value && verdict.kind == VerdictKind::not_timed)
          add(Severity::unfair, "NOT TIMED", {verdict.reason.text});
      add(Severity::unfair, "NOT VERIFIED", found.not_stated);
      add(Severity::note, "Declared", found.declared);
      for (const TestedVerdict& verdict : judged.verdicts)
        for (const Caveat& caveat : verdict.caveats)
          if (verdict.arm == value) add(Severity::unfair, caveat.mark, {caveat.text});
    }
  std::vector<Statement> statements;
  for (const auto& [line, arms] : lines) {
    const auto& [severity, word, reasons] = line;
    statements.push_back(
        {severity, fmt::format("{}: {}: {}{}.", word, first_and_others(arms),
                               word == "NOT VERIFIED" ? "the records do not state " : "", reasons)});
  }
  return statements;
}

}  // namespace trainyard::reports
