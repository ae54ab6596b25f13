#include "reports/fairness.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "reports/metrics.h"
#include "reports/number_text.h"

namespace trainyard::reports {

namespace {

using Texts = std::set<std::string>;

std::string joined(const Texts& texts, const char* between = ", ") {
  std::string result;
  for (const std::string& text : texts) result += (result.empty() ? "" : between) + text;
  return result;
}

std::string counted(std::size_t count, const std::string& noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

void for_each_run(const Cell& cell, const std::function<void(const Arm&, const Observation&)>& visit) {
  for (const Observation& observation : cell.baseline.runs) visit(cell.baseline, observation);
  for (const Arm& arm : cell.arms) {
    for (const Observation& observation : arm.runs) visit(arm, observation);
  }
}

Statement batches(const std::vector<Cell>& cells, const experiments::Compare& compare) {
  Texts sizes;
  bool same = true;
  for (const Cell& cell : cells) {
    Texts here;
    for_each_run(cell, [&](const Arm&, const Observation& observation) {
      std::string batch = value_of(*observation.run, "global_batch");
      if (batch.empty()) batch = value_of(*observation.run, "batch");
      if (!batch.empty()) here.insert(batch);
    });
    same = same && here.size() <= 1;
    sizes.insert(here.begin(), here.end());
  }
  if (!same) {
    return {compare.axis == "batch" ? Bearing::note : Bearing::unfair,
            "The global batch differs between the arms of a cell (" + joined(sizes) + ")."};
  }
  const std::string size = sizes.empty() ? "" : " (" + joined(sizes) + ")";
  return {Bearing::fair, "The global batch is the same for all arms of a cell" + size +
                             ": each of N replicas gets its N-th part."};
}

// Values of one name over all runs, beside the one that needs no remark.
Texts unusual_values(const std::vector<Cell>& cells, const std::string& name, const std::string& usual) {
  Texts values;
  for (const Cell& cell : cells) {
    for_each_run(cell, [&](const Arm&, const Observation& observation) {
      if (const std::string value = value_of(*observation.run, name); !value.empty()) values.insert(value);
    });
  }
  values.erase(usual);
  return values;
}

// What keeps a distributed run from being the same training as a single one, besides the batch.
void changed_training(const std::vector<Cell>& cells, std::vector<Statement>& statements) {
  if (!unusual_values(cells, "sampler", "exact").empty()) {
    statements.push_back({Bearing::unfair,
                          "Some runs use the distributed sampler: parts are padded to equal size, so that "
                          "some samples count twice."});
  }
  if (const Texts scaled = unusual_values(cells, "learning_rate_scaling", "none"); !scaled.empty()) {
    statements.push_back(
        {Bearing::note, "Some runs scale the learning rate with the global batch (" + joined(scaled) + ")."});
  }
}

Statement pairing(const std::vector<Cell>& cells, const experiments::Compare& compare) {
  if (compare.pair.empty()) {
    return {Bearing::note, "Arms are not paired: the file says so, and the Welch test is used."};
  }
  std::string by;
  for (const std::string& name : compare.pair) by += (by.empty() ? "" : " and ") + name;
  std::set<Texts> sets;
  for (const Cell& cell : cells) {
    std::map<std::string, Texts> pairs;
    for_each_run(cell, [&](const Arm& arm, const Observation& observation) {
      pairs[arm.value].insert(observation.pair);
    });
    for (const auto& [arm, values] : pairs) sets.insert(values);
  }
  if (sets.size() == 1) {
    const std::size_t count = sets.begin()->size();
    return {Bearing::fair,
            "All arms have the same " + (count == 1 ? "value of " : std::to_string(count) + " values of ") +
                by + ": differences are taken pair by pair, on the same data order and initial weights."};
  }
  return {Bearing::unfair,
          "Not all arms have the same values of " + by + ": what has no partner is left out."};
}

Statement warm_up(const std::vector<Cell>& cells) {
  std::int64_t fewest = 0;
  for (const Cell& cell : cells) {
    for_each_run(cell, [&](const Arm&, const Observation& observation) {
      if (observation.final == nullptr) return;
      fewest = fewest == 0 ? observation.final->epochs : std::min(fewest, observation.final->epochs);
    });
  }
  if (fewest == 0) return {Bearing::note, "No run has finished yet."};
  if (fewest >= 3) return {Bearing::fair, "Epoch 1 (warm-up) is drawn but left out of time verdicts."};
  return {Bearing::unfair,
          "Some runs have fewer than 3 epochs: their time verdicts include the warm-up epoch."};
}

Statement marked_times(const std::vector<Cell>& cells) {
  std::size_t marked = 0;
  std::size_t finished = 0;
  for (const Cell& cell : cells) {
    for_each_run(cell, [&](const Arm&, const Observation& observation) {
      if (observation.final == nullptr) return;
      ++finished;
      if (!observation.final->times_count) ++marked;
    });
  }
  if (marked == 0) return {Bearing::fair, "Every finished run had the host and its devices to itself."};
  return {Bearing::unfair, counted(marked, "run") + " of " + std::to_string(finished) +
                               " shared the host or a device: their times are marked and enter no verdict."};
}

// The baseline's rank against one rank of an arm: the same number of cores each.
Statement cores(const std::vector<Cell>& cells) {
  std::set<std::size_t> counts;
  bool unpinned = false;
  for (const Cell& cell : cells) {
    for_each_run(cell, [&](const Arm&, const Observation& observation) {
      if (observation.launched == nullptr) return;
      unpinned = unpinned || observation.launched->cores.empty();
      counts.insert(observation.launched->cores.begin(), observation.launched->cores.end());
    });
  }
  if (counts.size() == 1 && *counts.begin() > 0 && !unpinned) {
    return {Bearing::fair, "Each rank is pinned to " + counted(*counts.begin(), "core") +
                               "; a single device gets exactly what one rank of a distributed run gets."};
  }
  if (counts.size() > 1) return {Bearing::unfair, "Ranks do not all have the same number of cores."};
  return {Bearing::note, "Ranks are not pinned to cores, or it is not known."};
}

void stand_ins(const std::vector<Cell>& cells, std::vector<Statement>& statements) {
  std::set<std::pair<std::string, std::string>> replaced;
  for (const Cell& cell : cells) {
    for_each_run(cell, [&](const Arm&, const Observation& observation) {
      const db::RunSummary& run = *observation.run;
      if (!run.data_source.empty() && run.data_source != run.dataset)
        replaced.emplace(run.dataset, run.data_source);
    });
  }
  for (const auto& [asked, read] : replaced) {
    statements.push_back({Bearing::unfair, "Stand-in data: " + read + " was read in place of " + asked +
                                               "; the numbers say nothing about " + asked + "."});
  }
}

Statement machines(const ReportData& data) {
  Texts hosts;
  Texts programs;
  for (const auto& [key, launched] : data.launched) {
    const experiments::Circumstances& circumstances = launched.circumstances;
    hosts.insert(circumstances.host + " " + circumstances.processor);
    programs.insert(circumstances.release + " " + circumstances.libtorch);
  }
  if (hosts.size() <= 1 && programs.size() <= 1) {
    return {Bearing::fair, "All runs had the same machine, release and LibTorch."};
  }
  return {Bearing::unfair,
          "Runs had different machines or releases: times are compared only between equal ones."};
}

// The parity gate: that what was timed trains what one device would. What it finds wrong is said of each arm.
Statement parity(const ReportData& data, const std::vector<Cell>& cells) {
  const std::vector<std::string> unknown = not_probed(data, cells);
  if (unknown.empty())
    return {Bearing::fair,
            "Before it was timed, the first steps of each arm were compared with one process that does its "
            "work in turn."};
  return {Bearing::note, "Not probed: " + joined(Texts(unknown.begin(), unknown.end())) +
                             ": whether each trains what one device would is not known."};
}

void missing_runs(const ReportData& data, std::vector<Statement>& statements) {
  for (const db::RunSummary& run : data.runs) {
    if (run.status != "failed") continue;
    statements.push_back({Bearing::unfair, "Failed and left out: " + title_of(run.model) + " " +
                                               run.strategy + " seed " + std::to_string(run.seed) +
                                               (run.failure.empty() ? "" : " (" + run.failure + ")") + "."});
  }
}

// "2 replicas × 2 stages, 1f1b, 4 micro-batches"; empty for one process.
std::string mesh_text(const db::RunSummary& run) {
  if (run.replicas * run.stages <= 1) return "";
  std::string text;
  if (run.replicas > 1)
    text = counted(static_cast<std::size_t>(run.replicas), run.kind == "independent" ? "run" : "replica");
  if (run.kind == "independent") return text + " at once";
  if (run.stages <= 1) return text;
  text += (text.empty() ? "" : " × ") + counted(static_cast<std::size_t>(run.stages), "stage");
  if (const std::string schedule = value_of(run, "schedule"); !schedule.empty()) text += ", " + schedule;
  const std::string micro_batches = value_of(run, "micro_batches");
  if (!micro_batches.empty() && micro_batches != "1") text += ", " + micro_batches + " micro-batches";
  return text;
}

}  // namespace

std::vector<Statement> fairness_statements(const ReportData& data, const experiments::Compare& compare,
                                           const std::vector<Cell>& cells) {
  std::vector<Statement> statements{
      batches(cells, compare), pairing(cells, compare), warm_up(cells), marked_times(cells), cores(cells),
      machines(data),          parity(data, cells)};
  changed_training(cells, statements);
  stand_ins(cells, statements);
  missing_runs(data, statements);
  statements.push_back(
      {Bearing::note, "Verdicts are corrected for the number of cells of one metric and arm (Holm, α = " +
                          plain_number(compare.alpha) +
                          (compare.final_look ? ", one look" : ", 0.8 α for the first look") +
                          "); the intervals shown are not."});
  return statements;
}

std::vector<Statement> contract_statements(const std::vector<CellVerdicts>& cells) {
  std::vector<Statement> statements;
  for (const CellVerdicts& judged : cells) {
    for (std::size_t i = 0; i < judged.cell.arms.size(); ++i) {
      const Comparability& found = judged.comparability[i];
      const std::string arm = judged.cell.label + " " + judged.cell.arms[i].value;
      const auto add = [&](Bearing bearing, const std::string& word, const std::vector<std::string>& texts) {
        const Texts sorted(texts.begin(), texts.end());
        if (!sorted.empty())
          statements.push_back({bearing, word + ": " + arm + ": " + joined(sorted, "; ") + "."});
      };
      if (!found.broken.empty()) add(Bearing::unfair, "BROKEN", {found.broken});
      add(Bearing::unfair, "NOT COMPARABLE", found.refused);
      add(Bearing::unfair, "Times NOT COMPARABLE", found.times_refused);
      add(Bearing::unfair, "NOT VERIFIED", found.not_stated);
      add(Bearing::note, "Declared", found.declared);
    }
  }
  return statements;
}

std::vector<std::pair<std::string, std::string>> provenance(const ReportData& data) {
  std::map<std::string, std::size_t> status;
  Texts data_sets;
  Texts meshes;
  std::string last;
  for (const db::RunSummary& run : data.runs) {
    ++status[run.status];
    last = std::max(last, run.updated);
    const bool replaced = !run.data_source.empty() && run.data_source != run.dataset;
    if (const std::string mesh = mesh_text(run); !mesh.empty()) meshes.insert(run.strategy + ": " + mesh);
    data_sets.insert(run.dataset + (replaced ? " (stand-in: " + run.data_source + ")" : ""));
  }
  std::string runs =
      std::to_string(status["finished"]) + " complete, " + std::to_string(status["failed"]) + " failed";
  for (const char* other : {"running", "interrupted", "planned"}) {
    if (status[other] > 0) runs += ", " + std::to_string(status[other]) + " " + other;
  }
  Texts hosts;
  Texts processors;
  Texts releases;
  Texts libtorch;
  for (const auto& [key, launched] : data.launched) {
    hosts.insert(launched.circumstances.host);
    processors.insert(launched.circumstances.processor);
    releases.insert(launched.circumstances.release);
    libtorch.insert(launched.circumstances.libtorch);
  }
  std::vector<std::pair<std::string, std::string>> result{
      {"Runs", runs},
      {"Last record", last},
      {"Data", joined(data_sets)},
      {"Strategies", joined(meshes, "; ")},
      {"Host", joined(hosts)},
      {"Processor", joined(processors)},
      {"Release", joined(releases)},
      {"LibTorch", joined(libtorch)},
      {"Database", "schema " + std::to_string(data.schema_version)}};
  std::erase_if(result, [](const auto& entry) { return entry.second.empty(); });
  return result;
}

}  // namespace trainyard::reports
