#include "reports/verdicts/fairness.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/text.h"
#include "reports/format/number_text.h"
#include "reports/results/metrics.h"
#include "reports/verdicts/fairness_terms.h"

namespace trainyard::reports {

namespace {

using Texts = std::set<std::string>;

void for_each_run(const CellRuns& cell,
                  const std::function<void(const ArmRuns&, const Observation&)>& visit) {
  for (const Observation& observation : cell.baseline.runs) visit(cell.baseline, observation);
  for (const ArmRuns& arm : cell.arms) {
    for (const Observation& observation : arm.runs) visit(arm, observation);
  }
}

// Values of all runs of all cells, and whether they are equal within each cell.
struct Values {
  Texts all;
  bool same_in_cells = true;
};

Values values_in(const std::vector<CellRuns>& cells,
                 const std::function<void(const Observation&, Texts&)>& add_values) {
  Values values;
  for (const CellRuns& cell : cells) {
    Texts here;
    for_each_run(cell,
                 [&](const ArmRuns&, const Observation& observation) { add_values(observation, here); });
    values.same_in_cells = values.same_in_cells && here.size() <= 1;
    values.all.insert(here.begin(), here.end());
  }
  return values;
}

// All values of one name over our own runs, except the usual one.
Texts unusual_values(const std::vector<CellRuns>& cells, const std::string& name, const std::string& usual) {
  Texts values = values_in(cells, [&](const Observation& observation, Texts& here) {
                   if (observation.run->kind == "foreign")
                     return;  // the program may use another value than the file
                   if (const std::string value = value_of(*observation.run, name); !value.empty())
                     here.insert(value);
                 }).all;
  values.erase(usual);
  return values;
}

// Options, other than the batch, that make a distributed run another training than a single-device run.
void changed_training(const std::vector<CellRuns>& cells, std::vector<Statement>& statements) {
  if (!unusual_values(cells, "sampler", "exact").empty()) {
    statements.push_back(
        {Severity::unfair,
         "Some runs use the distributed sampler. It pads the replicas' parts to equal size, so "
         "some samples are used twice."});
  }
  if (const Texts scaled = unusual_values(cells, "learning_rate_scaling", "none"); !scaled.empty()) {
    statements.push_back({Severity::note, "Some runs scale the learning rate with the global batch (" +
                                              joined(scaled) + ")."});
  }
}

Statement pairing(const std::vector<CellRuns>& cells, const experiments::Compare& compare) {
  if (compare.pair.empty()) {
    return {Severity::note, "Arms are not paired, as set in the experiment file. Welch's t test is used."};
  }
  std::string by;
  for (const std::string& name : compare.pair) by += (by.empty() ? "" : " and ") + name;
  std::set<std::size_t> counts;
  bool same = true;
  for (const CellRuns& cell : cells) {
    std::map<std::string, Texts> pairs;
    for_each_run(cell, [&](const ArmRuns& arm, const Observation& observation) {
      pairs[arm.value].insert(observation.pair);
    });
    for (const auto& [arm, values] : pairs) {
      same = same && values == pairs.begin()->second;
      counts.insert(values.size());
    }
  }
  if (!same)
    return {Severity::unfair,
            "Not all arms have the same values of " + by + ". Runs without a partner are left out."};
  const std::string number = counts.size() > 1      ? "values"
                             : *counts.begin() == 1 ? "value"
                                                    : fmt::format("{} values", *counts.begin());
  return {Severity::fair, fmt::format("All arms{} have the same {} of {}. Differences are computed per pair.",
                                      counts.size() > 1 ? " of a cell" : "", number, by)};
}

Statement warm_up(const std::vector<CellRuns>& cells) {
  std::int64_t fewest = 0;
  for (const CellRuns& cell : cells) {
    for_each_run(cell, [&](const ArmRuns&, const Observation& observation) {
      if (observation.final == nullptr) return;
      fewest = fewest == 0 ? observation.final->epochs : std::min(fewest, observation.final->epochs);
    });
  }
  if (fewest == 0) return {Severity::note, "No run has finished yet."};
  if (fewest >= 3)
    return {Severity::fair, "Epoch 1 (warm-up) is shown in figures but left out of time verdicts."};
  return {Severity::unfair,
          "Some runs have fewer than 3 epochs. Their time verdicts include the warm-up epoch. Use 3 epochs "
          "or more."};
}

// Whether the times of the finished runs count.
struct TimesKnown {
  std::int64_t finished = 0, marked = 0, not_recorded = 0;
  std::map<std::string, std::int64_t> problems;  // number of runs by reason
  double most_taken = 0;  // largest share of cores taken by other processes, over runs that count
};

TimesKnown times_known(const std::vector<CellRuns>& cells) {
  TimesKnown known;
  for (const CellRuns& cell : cells) {
    for_each_run(cell, [&](const ArmRuns&, const Observation& observation) {
      if (observation.final == nullptr) return;
      const db::FinalMetrics& final = *observation.final;
      ++known.finished;
      if (!final.times_count) {
        ++known.marked;
        ++known.problems[final.times_problem.empty() ? "the host or a device was shared"
                                                     : final.times_problem];
      } else if (std::isnan(final.other_share)) {
        ++known.not_recorded;
      } else {
        known.most_taken = std::max(known.most_taken, final.other_share);
      }
    });
  }
  return known;
}

// The three most frequent reasons: "3 runs: other runs shared the host; 1 run: …".
std::string reasons_text(const std::map<std::string, std::int64_t>& problems) {
  std::vector<std::pair<std::string, std::int64_t>> sorted(problems.begin(), problems.end());
  std::ranges::stable_sort(sorted, std::ranges::greater{}, &std::pair<std::string, std::int64_t>::second);
  constexpr std::size_t most = 3;
  std::string text;
  for (std::size_t i = 0; i < std::min(most, sorted.size()); ++i)
    text += fmt::format("{}{}: {}", i == 0 ? "" : "; ", counted(sorted[i].second, "run"), sorted[i].first);
  if (sorted.size() > most)
    text += "; " + counted(sorted.size() - most, "further reason") + " in `trainyard show`";
  return text;
}

Statement marked_times(const std::vector<CellRuns>& cells) {
  const TimesKnown known = times_known(cells);
  if (known.finished == 0) return {Severity::note, "No times are known yet."};
  if (known.marked > 0)
    return {Severity::unfair,
            fmt::format("The times of {} of {} are flagged and not used in verdicts ({}).",
                        counted(known.marked, "run"), known.finished, reasons_text(known.problems))};
  if (known.not_recorded > 0)
    return {Severity::note,
            "It is not known whether every finished run had its devices to itself. The load of other "
            "processes was not recorded for " +
                counted(known.not_recorded, "run") + "."};
  return {Severity::fair,
          "Every finished run was the only timed run on its host and had its devices to itself. Other "
          "processes took at most " +
              plain_number(std::round(1000 * known.most_taken) / 10) + " % of the leased cores."};
}

// Cores and threads of one rank: "2 cores for 2 threads".
std::string cores_and_threads(std::size_t cores, int threads) {
  return fmt::format("{} for {}", counted(static_cast<std::int64_t>(cores), "core"),
                     counted(static_cast<std::int64_t>(threads), "thread"));
}

// Whether all ranks of a cell, also those of the baseline, have the same number of cores.
Statement cores(const std::vector<CellRuns>& cells, const experiments::Compare& compare) {
  bool unpinned = false;
  const auto [counts, same] = values_in(cells, [&](const Observation& observation, Texts& here) {
    if (observation.launched == nullptr) return;
    unpinned = unpinned || observation.launched->cores.empty();
    for (const std::size_t count : observation.launched->cores)
      here.insert(count == 0
                      ? "0 cores"
                      : cores_and_threads(count, observation.launched->circumstances.threads_per_rank));
  });
  if (!same)
    return {compare.axis == "threads" ? Severity::note : Severity::unfair,
            "Ranks do not all have the same number of cores (" + joined(counts) + ")."};
  if (counts.empty() || unpinned || counts.contains("0 cores"))
    return {Severity::note, "Ranks are not pinned to cores, or pinning was not recorded."};
  return {Severity::fair,
          "Each rank is pinned to " + joined(counts, {}, " or ") +
              ". A run on one device has the same resources as one rank of a distributed run."};
}

void stand_ins(const std::vector<CellRuns>& cells, std::vector<Statement>& statements) {
  std::set<std::pair<std::string, std::string>> replaced;
  for (const CellRuns& cell : cells) {
    for_each_run(cell, [&](const ArmRuns&, const Observation& observation) {
      const db::RunSummary& run = *observation.run;
      if (run.kind == "foreign") return;  // reads its own data
      if (!run.data_source.empty() && run.data_source != run.dataset)
        replaced.emplace(run.dataset, run.data_source);
    });
  }
  if (replaced.empty()) return;
  std::map<std::string, std::vector<std::string>> asked_by_source;
  for (const auto& [asked, read] : replaced) asked_by_source[read].push_back(asked);
  std::string which;
  for (const auto& [read, asked] : asked_by_source)
    which += fmt::format("{}{} instead of {}", which.empty() ? "" : ", ",
                         read + (which.empty() ? " was used" : ""), joined(asked, {}, " and "));
  statements.push_back(
      {Severity::unfair, fmt::format("Stand-in data: {}. The results do not apply to {}.", which,
                                     replaced.size() == 1 ? replaced.begin()->first : "these data sets")});
}

Statement machines(const ReportData& data) {
  Texts hosts;
  Texts programs;
  std::map<std::string, Texts> settings;
  bool recorded = true;
  for (const auto& [key, launched] : data.launched) {
    const experiments::Circumstances& circumstances = launched.circumstances;
    hosts.insert(fmt::format("{} {}", circumstances.host, circumstances.processor));
    programs.insert(circumstances.release);
    recorded = recorded && !circumstances.build.empty();
    for (const auto& difference :
         experiments::differing_settings(data.launched.begin()->second.circumstances, circumstances))
      settings[difference.name].merge(Texts{difference.first, difference.second});
  }
  if (hosts.empty()) return {Severity::note, "The machines of the runs are not known."};
  const auto text = [](const auto& setting) { return setting.first + ": " + joined(setting.second); };
  if (hosts.size() <= 1 && programs.size() <= 1 && !settings.empty())
    return {Severity::unfair, "Runs used different settings (" + joined(settings, text) +
                                  "). Times are compared only if these are the same."};
  if (hosts.size() <= 1 && programs.size() <= 1)
    return {recorded ? Severity::fair : Severity::note,
            recorded ? "All runs used the same machine, the same build of trainyard and the same environment."
                     : "All runs used the same machine and the same release of trainyard. Their build and "
                       "environment were not recorded."};
  return {Severity::unfair,
          "Runs used different machines or releases. Times are compared only if both are the same."};
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

// Failed runs, also of the machine's limits: one statement per reason, with an example.
void missing_runs(const ReportData& data, const std::vector<CellRuns>& cells,
                  std::vector<Statement>& statements) {
  std::vector<std::pair<std::string, Texts>> names_by_reason;
  const auto add = [&](const Observation& observation) {
    const db::RunSummary& run = *observation.run;
    if (run.status != "failed") return;
    const std::string name = name_of(run, title_of(run), data.plan.varied);
    auto known = std::ranges::find(names_by_reason, run.failure, &std::pair<std::string, Texts>::first);
    if (known == names_by_reason.end())
      known = names_by_reason.insert(names_by_reason.end(), {run.failure, {}});
    known->second.insert(name);
  };
  for (const CellRuns& cell : cells) {
    for_each_run(cell, [&](const ArmRuns&, const Observation& observation) { add(observation); });
    for (const ArmRuns& limit : cell.limits) std::ranges::for_each(limit.runs, add);
  }
  for (const auto& [reason, names] : names_by_reason) {
    const std::string which =
        names.size() == 1 ? *names.begin()
                          : fmt::format("{}, for example {}", counted(names.size(), "run"), *names.begin());
    statements.push_back({Severity::unfair, fmt::format("Failed and left out: {}{}.",
                                                        reason.empty() ? "" : reason + ": ", which)});
  }
}

bool is_compared(const CellRuns& cell) {
  return !cell.baseline.runs.empty() && !cell.arms.empty();
}

}  // namespace

std::vector<Statement> fairness_statements(const ReportData& data, const experiments::Compare& compare,
                                           const std::vector<CellRuns>& cells) {
  const bool compared = std::ranges::any_of(cells, is_compared);
  std::vector<Statement> statements;
  if (compared) {
    statements = {pairing(cells, compare)};
    std::ranges::copy(term_statements(data, compare, cells), std::back_inserter(statements));
  }
  std::ranges::copy(std::vector{warm_up(cells), marked_times(cells), cores(cells, compare), machines(data),
                                libtorch_statement(data), parity(data, cells)},
                    std::back_inserter(statements));
  changed_training(cells, statements);
  stand_ins(cells, statements);
  missing_runs(data, cells, statements);
  if (!compared) return statements;
  statements.push_back(
      {Severity::note, fmt::format("p-values are corrected for the number of cells of one metric and arm "
                                   "(Holm, α = {}{}). The intervals shown are not corrected.",
                                   plain_number(compare.alpha),
                                   compare.final_look ? ", one look" : ", 0.8 α for the first look")});
  return statements;
}

std::vector<Statement> contract_statements(const std::vector<CellVerdicts>& cells) {
  struct Found {
    Severity severity;
    std::string word;
    std::string reasons;
    std::vector<std::string> arms;
  };
  std::vector<Found> all;  // one entry per word and reasons
  for (const CellVerdicts& judged : cells) {
    for (std::size_t i = 0; i < judged.cell.arms.size(); ++i) {
      const Comparability& found = judged.comparability[i];
      const std::string arm = fmt::format("{} {}", judged.cell.label, judged.cell.arms[i].value);
      const auto add = [&](Severity severity, const std::string& word,
                           const std::vector<std::string>& texts) {
        if (texts.empty()) return;
        const std::string reasons = joined(Texts(texts.begin(), texts.end()), {}, "; ");
        const auto known = std::ranges::find_if(
            all, [&](const Found& one) { return one.word == word && one.reasons == reasons; });
        if (known == all.end()) {
          all.push_back({severity, word, reasons, {arm}});
        } else if (known->arms.back() != arm) {
          known->arms.push_back(arm);
        }
      };
      if (!found.broken.empty()) add(Severity::unfair, "BROKEN", {found.broken});
      add(Severity::unfair, "NOT COMPARABLE", found.refused);
      add(Severity::unfair, "Times NOT COMPARABLE", found.times_refused);
      for (const Verdict& verdict : judged.verdicts)
        if (verdict.arm == judged.cell.arms[i].value && verdict.kind == VerdictKind::not_timed) {
          add(Severity::unfair, "NOT TIMED", {verdict.reason.text});
          break;  // its other times have the same placement
        }
      add(Severity::unfair, "NOT VERIFIED", found.not_stated);
      add(Severity::note, "Declared", found.declared);
      for (const Verdict& verdict : judged.verdicts)
        if (verdict.arm == judged.cell.arms[i].value)
          for (const Caveat& caveat : verdict.caveats) add(Severity::unfair, caveat.mark, {caveat.text});
    }
  }
  std::vector<Statement> statements;
  for (const Found& one : all) {
    const std::string more = one.arms.size() == 1 ? "" : " and " + counted(one.arms.size() - 1, "other arm");
    const std::string reasons = (one.word == "NOT VERIFIED" ? "the records do not state " : "") + one.reasons;
    statements.push_back(
        {one.severity, fmt::format("{}: {}{}: {}.", one.word, one.arms.front(), more, reasons)});
  }
  return statements;
}

}  // namespace trainyard::reports
