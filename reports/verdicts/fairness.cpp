#include "reports/verdicts/fairness.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <span>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "base/named_row.h"
#include "base/text.h"
#include "experiments/protocol/launch.h"
#include "models/catalogue.h"
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
  for (const CellRuns& cell : cells)
    for (const ArmRuns* arm : cell.compared())
      for (const Observation& seen : arm->runs) runs.push_back({arm->value, seen});
  return runs;
}

// Two finished runs that are compared, and what they state. Failed runs are in no verdict, and planned runs
// state nothing yet.
struct ComparedPair {
  const std::string& baseline;
  const std::string& arm;
  std::int64_t replicas;  // of the arm
  RunTerms baseline_terms, terms;
};

std::vector<ComparedPair> pairs_of(const ReportData& data, const std::vector<CellRuns>& cells, bool paired) {
  std::vector<ComparedPair> pairs;
  for (const CellRuns& cell : cells)
    for (const ArmRuns& arm : cell.arms)
      for (std::size_t i = 0; i < arm.runs.size(); ++i) {
        const Observation& own = arm.runs[i];
        const Observation* partner = compared_with(cell.baseline, arm, i, paired);
        if (partner != nullptr && partner->final != nullptr && own.final != nullptr)
          pairs.push_back({cell.baseline.value, arm.value, own.run->replicas, terms_of(data, *partner->run),
                           terms_of(data, *own.run)});
      }
  return pairs;
}

// A term that both runs of a pair must share.
struct Term {
  const char* name;
  const char* title;
  const char* same;  // the text if all pairs agree
  bool has_hashes;   // as values: they depend on the seed, and are not shown
};
constexpr std::array<Term, 3> shared_terms{
    {{"global_batch", "Global batch", "the same for all arms of a cell", false},
     {"initial_weights", "Initial weights", "the same in each pair (SHA-256 per layer)", true},
     {"batches", "Data order", "the same samples in the same order in each pair (SHA-256 per epoch)", true}}};

Statement term_statement(const Term& term, const std::vector<ComparedPair>& pairs,
                         const experiments::Compare& compare) {
  Texts values, not_stated, in_part, other;
  bool declared = false;
  for (const ComparedPair& pair : pairs) {
    const std::string first = pair.baseline_terms.term(term.name);
    const std::string second = pair.terms.term(term.name);
    first.empty() ? not_stated.insert(pair.baseline) : values.insert(first);
    second.empty() ? not_stated.insert(pair.arm) : values.insert(second);
    if (first.empty() || second.empty() || first == second) continue;
    // Empty if one of them states only some of the layers or epochs, and both agree on the others.
    const auto differing = experiments::differing_terms({{term.name, first}}, {{term.name, second}}, compare);
    (differing.empty() ? in_part : other).insert(pair.arm);
    if (!differing.empty()) declared = differing.front().declared;
  }
  const std::string shown = term.has_hashes ? "" : " (" + joined(values) + ")";
  const auto line = [&](Severity severity, const std::string& text) {
    return Statement{severity, fmt::format("{}: {}.", term.title, text)};
  };
  if (!other.empty())
    return line(declared ? Severity::note : Severity::unfair,
                joined(other) + (other.size() == 1 ? " differs" : " differ") + " from the baseline" + shown +
                    (declared ? ", as declared" : ""));
  if (!not_stated.empty()) return line(Severity::note, "not stated by " + joined(not_stated));
  if (!in_part.empty()) return line(Severity::note, "stated only in part by " + joined(in_part));
  return line(Severity::fair, term.same + shown);
}

// Whether each replica used its part of a global batch. Replicas with a whole batch each would together have
// seen more samples than the baseline.
void add_replica_parts(const std::vector<ComparedPair>& pairs, std::vector<Statement>& statements) {
  Texts shown, foreign, unknown;
  for (const ComparedPair& pair : pairs) {
    if (pair.replicas <= 1) continue;
    const std::string samples = pair.terms.term("samples");
    const bool same = !samples.empty() && samples == pair.baseline_terms.term("samples");
    (pair.terms.foreign ? foreign : same ? shown : unknown).insert(pair.arm);
  }
  for (const std::string& arm : unknown) shown.erase(arm);
  const auto add = [&](Severity severity, const Texts& arms, const char* text) {
    if (!arms.empty())
      statements.push_back({severity, fmt::format("Replicas of {}: {}.", joined(arms), text)});
  };
  add(Severity::fair, shown,
      "each of N gets 1/N of the global batch, and together they saw as many samples as the baseline");
  add(Severity::note, unknown, "it is not recorded that together they saw as many samples as the baseline");
  add(Severity::note, foreign, "their parts of the global batch are not stated");
}

void add_terms(const ReportData& data, const experiments::Compare& compare,
               const std::vector<CellRuns>& cells, std::vector<Statement>& statements) {
  const std::vector<ComparedPair> pairs = pairs_of(data, cells, !compare.pair.empty());
  if (pairs.empty()) return;
  const bool by_seed = std::ranges::find(compare.pair, "seed") != compare.pair.end();
  for (const Term& term : shared_terms) {
    const bool of_other_models = compare.axis == "model" && term.title == std::string("Initial weights");
    if ((by_seed || !term.has_hashes) && !of_other_models)
      statements.push_back(term_statement(term, pairs, compare));
  }
  add_replica_parts(pairs, statements);
}

Statement pairing(const std::vector<CellRuns>& cells, const experiments::Compare& compare) {
  if (compare.pair.empty()) return {Severity::note, "Pairs: none, as planned. Welch's t test is used."};
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
  const std::string by = all_of(compare.pair);
  if (!same)
    return {Severity::unfair,
            "Pairs: not all arms have the same values of " + by + ". Runs without a partner are left out."};
  const std::string number = counts.size() > 1 ? "values" : counted(*counts.begin(), "value");
  return {Severity::fair, fmt::format("Pairs: all arms of a cell have the same {} of {}. Differences are "
                                      "computed per pair.",
                                      number, by)};
}

Statement warm_up(const std::vector<ComparedRun>& runs) {
  std::set<std::int64_t> epochs;
  for (const ComparedRun& one : runs)
    if (one.seen.final != nullptr) epochs.insert(one.seen.final->epochs);
  if (epochs.empty()) return {Severity::note, "Warm-up: no run has finished yet."};
  if (*epochs.begin() >= 3)
    return {Severity::fair, "Warm-up: epoch 1 is drawn, but left out of time verdicts."};
  return {Severity::unfair, "Warm-up: time verdicts include epoch 1, as some runs have fewer than 3 epochs."};
}

// The three most frequent reasons: "3 runs: other runs shared the host; 1 run: …".
std::string reasons_text(const std::map<std::string, int>& runs_by_reason) {
  std::vector<std::pair<std::string, int>> sorted(runs_by_reason.begin(), runs_by_reason.end());
  std::ranges::stable_sort(sorted, std::ranges::greater{}, &std::pair<std::string, int>::second);
  const std::size_t shown = std::min<std::size_t>(3, sorted.size());
  const auto text = [](const auto& one) { return counted(one.second, "run") + ": " + one.first; };
  return joined(std::span(sorted).first(shown), text, "; ") +
         (sorted.size() > shown ? "; the others are in `trainyard show`" : "");
}

// Whether the times of the finished runs count.
Statement times(const std::vector<ComparedRun>& runs, const experiments::Compare& compare) {
  int finished = 0, used = 0, not_recorded = 0, packed = 0;
  std::map<std::string, int> problems;
  double most_taken = 0;         // largest share of cores taken by other processes, over runs that count
  int timed = 0, disturbed = 0;  // their epochs: used, and left out
  double limit = 0;              // largest share with which times count
  std::vector<double> loads;     // shares above the limit
  for (const ComparedRun& one : runs) {
    if (one.seen.final == nullptr) continue;
    const db::FinalMetrics& final = *one.seen.final;
    ++finished;
    if (final.others_limit > limit) limit = final.others_limit;
    if (!final.times_count) {
      if (final.other_share > final.others_limit)
        loads.push_back(final.other_share);
      else if (final.times_problem == db::times_not_needed && compare.seeds)
        ++packed;
      else
        ++problems[final.times_problem.empty() ? "the host or a device was shared" : final.times_problem];
      continue;
    }
    ++used;
    timed += final.timed_epochs;
    disturbed += final.disturbed_epochs;
    if (std::isnan(final.other_share))
      ++not_recorded;
    else
      most_taken = std::max(most_taken, final.other_share);
  }
  if (finished == 0) return {Severity::note, "Times: none are known yet."};
  if (!loads.empty()) {
    const auto [least, most] = std::ranges::minmax(loads);
    problems[load_text(least, most)] = static_cast<int>(loads.size());
  }
  std::string more;
  if (disturbed > 0)
    more = fmt::format(" Other processes disturbed {} of {} timed epochs, which are left out.", disturbed,
                       disturbed + timed);
  if (packed > 0)
    more += fmt::format(" {} trained beside others, because times were not needed any more.",
                        counted(packed, "run"));
  std::vector<std::string> faults;
  if (const int flagged = finished - used - packed; flagged > 0)
    faults.push_back(fmt::format("those of {} of {} are flagged and not used in verdicts ({})",
                                 counted(flagged, "run"), finished, reasons_text(problems)));
  if (limit > experiments::others_limit)
    faults.push_back(
        fmt::format("other processes may take {} % of the cores (TRAINYARD_OTHERS_LIMIT), not {} %",
                    plain_number(100 * limit), plain_number(100 * experiments::others_limit)));
  if (!faults.empty()) return {Severity::unfair, "Times: " + joined(faults, {}, "; ") + "." + more};
  if (not_recorded > 0)
    return {Severity::note, "Times: the load of other processes was not recorded for " +
                                counted(not_recorded, "run") + ", so devices may have been shared." + more};
  return {Severity::fair,
          "Times: each timed run was the only one on its host and had its devices to itself. Other processes "
          "took at most " +
              plain_number(std::round(1000 * most_taken) / 10) +
              " % of the leased cores in the epochs that count." + more};
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
      pinned = pinned && !launched->cores.empty() && !std::ranges::count(launched->cores, 0U);
      for (const std::size_t count : launched->cores)
        of_cell.insert(fmt::format("{} for {}", counted(count, "core"),
                                   counted(launched->circumstances.threads_per_rank, "thread")));
    }
    same = same && of_cell.size() <= 1;
    all.merge(of_cell);
  }
  if (!same)
    return {compare.axis == "threads" ? Severity::note : Severity::unfair,
            "Cores: not the same for all ranks of a cell (" + joined(all) + ")."};
  if (all.empty() || !pinned)
    return {Severity::note, "Cores: ranks are not pinned, or pinning was not recorded."};
  return {Severity::fair,
          "Cores: each rank, also of a run on one device, is pinned to " + joined(all, {}, " or ") + "."};
}

Statement machines(const ReportData& data) {
  Texts machines;
  std::map<std::string, Texts> settings;  // that differ
  bool recorded = true;
  for (const auto& [key, launched] : data.launched) {
    const experiments::Circumstances& own = launched.circumstances;
    machines.insert(fmt::format("{} {} with trainyard {}", own.host, own.processor, own.release));
    recorded = recorded && !own.build.empty();
    for (const auto& difference :
         experiments::differing_settings(data.launched.begin()->second.circumstances, own))
      settings[difference.name].merge(Texts{difference.first, difference.second});
  }
  const auto text = [](const auto& setting) { return setting.first + ": " + joined(setting.second); };
  if (machines.empty()) return {Severity::note, "Machine: not known."};
  if (machines.size() > 1)
    return {Severity::unfair,
            "Machine: runs used " + joined(machines) + ". Times of different ones are not compared."};
  if (!settings.empty())
    return {Severity::unfair, "Settings: runs differ (" + joined(settings, text) +
                                  "). Times of different ones are not compared."};
  if (!recorded)
    return {Severity::note,
            "Machine: the same and one release of trainyard. Build and environment are not known."};
  return {Severity::fair, "Machine: all runs used the same one, with the same build and environment."};
}

// Covers all finished runs that have records, compared or not.
Statement libtorch(const ReportData& data) {
  Texts versions, not_stated;
  for (const db::RunSummary& run : data.runs) {
    const db::RunEvidence* evidence = value_or_null(data.evidence, run.run_key);
    if (run.status != "finished" || evidence == nullptr) continue;
    if (evidence->ranks.empty()) not_stated.insert(run.strategy);
    for (const db::RunEvidence::Rank& rank : evidence->ranks)
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
  const bool has_replays = std::ranges::any_of(
      data.runs, [](const db::RunSummary& run) { return value_of(run, "mode") == "async"; });
  if (unknown.empty())
    return {
        Severity::fair,
        std::string(
            "Parity check: before timing, the first steps of each arm were compared with a single process") +
            (has_replays ? ", and those of asynchronous servers with their replay." : ".")};
  const bool recorded = std::ranges::any_of(data.evidence, [](const auto& one) {
    return one.second.ranks.size() > 1 && one.second.ranks.front().start.contains("observed");
  });
  return {
      Severity::note,
      "Parity check: missing for " + joined(Texts(unknown.begin(), unknown.end())) +
          ". It is not known whether they train like a single device." +
          (recorded ? " `trainyard explain " + data.experiment + " --probe` compares the gradients." : "")};
}

// Options, other than the batch, that make a distributed run another training than a single-device run, and data of our
// own runs. Foreign programs read their own data and may use other values than the file.
void add_changed_training(const std::vector<ComparedRun>& runs, std::vector<Statement>& statements) {
  Texts samplers, scalings, stand_ins, data_sets;
  for (const ComparedRun& one : runs) {
    const db::RunSummary& run = *one.seen.run;
    if (run.kind == "foreign") continue;
    samplers.insert(value_of(run, "sampler"));
    scalings.insert(value_of(run, "learning_rate_scaling"));
    if (run.data_source.empty() || run.data_source == run.dataset) continue;
    stand_ins.insert(run.data_source + " instead of " + run.dataset);
    data_sets.insert(run.dataset);
  }
  for (const char* usual : {"", "exact"}) samplers.erase(usual);
  for (const char* usual : {"", "none"}) scalings.erase(usual);
  if (!samplers.empty())
    statements.push_back(
        {Severity::unfair,
         fmt::format("Sampler: {} in some runs. It pads the replicas' parts, so some samples are used twice.",
                     joined(samplers))});
  if (!scalings.empty())
    statements.push_back(
        {Severity::note,
         fmt::format("Learning rate: scaled with the global batch in some runs ({}).", joined(scalings))});
  if (!stand_ins.empty())
    statements.push_back({Severity::unfair, fmt::format("Stand-in data: {}. The results do not apply to {}.",
                                                        joined(stand_ins), joined(data_sets))});
}

// Models whose seeds begin with the same weights, as an exported network does with those of its file, and every model with
// those of `initial`. The intervals then leave out how much the results depend on the first weights.
void add_same_weights(const ReportData& data, const std::vector<CellRuns>& cells,
                      std::vector<Statement>& statements) {
  Texts models, exported;
  for (const CellRuns& cell : cells) {
    std::set<std::int64_t> seeds;
    Texts titles, weights;
    bool others = false;  // models that `trainyard export` does not write
    for (const Observation& seen : cell.baseline.runs) {
      if (seen.final == nullptr) continue;
      const RunTerms terms = terms_of(data, *seen.run);
      seeds.insert(seen.run->seed);
      titles.insert(title_of(*seen.run));
      weights.insert(terms.term("initial_weights"));
      others = others || terms.foreign ||
               row_or_null(models::catalogue(), &models::Model::name, seen.run->model) != nullptr;
    }
    if (seeds.size() > 1 && weights.size() == 1 && !weights.begin()->empty())
      (others ? models : exported).merge(titles);
  }
  const auto add = [&](const Texts& names, const char* advice) {
    if (!names.empty())
      statements.push_back(
          {Severity::unfair, fmt::format("Seeds of {}: all begin with the same weights, so the verdicts hold "
                                         "only for these.{}",
                                         joined(names), advice)});
  };
  add(models, "");
  add(exported, " `trainyard export … --seeds` writes weights for each seed.");
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

// ", for each of 6 families": arms and published metrics. Empty for one.
std::string families_text(const experiments::Compare& compare, const std::vector<CellRuns>& cells) {
  Texts arms;
  for (const CellRuns& cell : cells)
    for (const ArmRuns& arm : cell.arms) arms.insert(arm.value);
  const std::size_t families = arms.size() * published_metrics().size();
  if (families < 2) return "";
  return fmt::format(", {} {} families", compare.families == "all" ? "divided among" : "for each of",
                     families);
}

}  // namespace

std::vector<Statement> fairness_statements(const ReportData& data, const experiments::Compare& compare,
                                           const std::vector<CellRuns>& cells) {
  const bool compared = std::ranges::any_of(
      cells, [](const CellRuns& cell) { return !cell.baseline.runs.empty() && !cell.arms.empty(); });
  const std::vector<ComparedRun> runs = runs_of(cells);
  std::vector<Statement> statements;
  if (compared) {
    statements.push_back(pairing(cells, compare));
    add_terms(data, compare, cells, statements);
  }
  for (const Statement& statement : {warm_up(runs), times(runs, compare), cores(cells, compare),
                                     machines(data), libtorch(data), parity(data, cells)})
    statements.push_back(statement);
  add_changed_training(runs, statements);
  add_same_weights(data, cells, statements);
  add_failed_runs(data, cells, statements);
  if (compared)
    statements.push_back(
        {Severity::note, fmt::format("p-values: corrected for the number of cells of one metric and arm "
                                     "(Holm, α = {}{}{}). Intervals are not corrected for it.",
                                     plain_number(compare.alpha), families_text(compare, cells),
                                     compare.seeds ? fmt::format(", a look after each seed from {} to {}",
                                                                 compare.seeds->min, compare.seeds->max)
                                                   : std::string())});
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
      add(Severity::unfair, "NOT VERIFIED", found.not_stated);
      add(Severity::note, "Declared", found.declared);
      for (const TestedVerdict& verdict : judged.verdicts)
        for (const Caveat& caveat : verdict.caveats)
          if (verdict.arm == value)
            add(caveat.mark == identical_mark ? Severity::note : Severity::unfair, caveat.mark,
                {caveat.text});
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
