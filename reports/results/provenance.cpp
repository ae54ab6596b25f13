#include "reports/results/provenance.h"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "base/text.h"
#include "experiments/run/strategies.h"
#include "reports/results/cells.h"

namespace trainyard::reports {

namespace {

using Texts = std::set<std::string>;

// "2 replicas × 2 stages, 1f1b, 4 micro-batches"; empty for one process.
std::string mesh_text(const db::RunSummary& run) {
  if (run.replicas * run.stages <= 1) return "";
  std::string text;
  if (run.replicas > 1)
    text = counted(run.replicas, experiments::is_independent(run.kind) ? "run" : "replica");
  if (experiments::is_independent(run.kind)) return text + " at once";
  if (run.stages <= 1) return text;
  text += (text.empty() ? "" : " × ") + counted(run.stages, "stage");
  if (const std::string schedule = value_of(run, "schedule"); !schedule.empty()) text += ", " + schedule;
  const std::string micro_batches = value_of(run, "micro_batches");
  if (!micro_batches.empty() && micro_batches != "1") text += ", " + micro_batches + " micro-batches";
  return text;
}

std::string counts_text(const ReportData& data, bool in_latest_plan) {
  std::map<std::string, std::size_t> status;
  for (const db::RunSummary& run : data.runs)
    if (run.in_latest_plan == in_latest_plan) ++status[run.status];
  if (status.empty() && !in_latest_plan) return "";
  std::string text = fmt::format("{} complete, {} failed", status["finished"], status["failed"]);
  for (const char* other : {"running", "interrupted", "planned"})
    if (status[other] > 0) text += fmt::format(", {} {}", status[other], other);
  return text;
}

// Runs of earlier plans that are not in the latest plan are counted separately.
std::string runs_text(const ReportData& data) {
  const std::string before = counts_text(data, false);
  return counts_text(data, true) +
         (before.empty() ? "" : "; planned before, not in the latest plan: " + before);
}

Texts data_sets(const ReportData& data) {
  Texts texts;
  for (const db::RunSummary& run : data.runs) {
    const bool replaced = !run.data_source.empty() && run.data_source != run.dataset;
    texts.insert(run.dataset + (replaced ? " (stand-in: " + run.data_source + ")" : ""));
  }
  return texts;
}

Texts meshes(const ReportData& data) {
  Texts texts;
  for (const db::RunSummary& run : data.runs)
    if (const std::string mesh = mesh_text(run); !mesh.empty())
      texts.insert(fmt::format("{}: {}", run.strategy, mesh));
  return texts;
}

// All values of one of the circumstances, over all launches.
std::string launched_with(const ReportData& data, std::string experiments::Circumstances::*circumstance) {
  Texts texts;
  for (const auto& [key, launched] : data.launched) texts.insert(launched.circumstances.*circumstance);
  return joined(texts);
}

// From the records of the ranks: a foreign program may use another version or none.
std::string libtorch_text(const ReportData& data) {
  Texts texts;
  for (const auto& [key, evidence] : data.evidence)
    for (const db::RunEvidence::Rank& rank : evidence.ranks)
      if (!rank.libtorch_version.empty()) texts.insert(rank.libtorch_version);
  return joined(texts);
}

}  // namespace

std::vector<std::pair<std::string, std::string>> provenance(const ReportData& data) {
  using experiments::Circumstances;
  std::vector<std::pair<std::string, std::string>> result{
      {"Runs", runs_text(data)},
      {"Last record", last_record_time(data)},
      {"Data", joined(data_sets(data))},
      {"Strategies", joined(meshes(data), {}, "; ")},
      {"Host", launched_with(data, &Circumstances::host)},
      {"Processor", launched_with(data, &Circumstances::processor)},
      {"Release", launched_with(data, &Circumstances::release)},
      {"LibTorch", libtorch_text(data)},
      {"Database", fmt::format("schema {}", data.schema_version)}};
  std::erase_if(result, [](const auto& entry) { return entry.second.empty(); });
  return result;
}

}  // namespace trainyard::reports
