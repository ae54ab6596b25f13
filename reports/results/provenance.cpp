#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include <fmt/format.h>

#include "base/named_row.h"
#include "base/text.h"
#include "experiments/run/strategies.h"
#include "reports/results/cells.h"
#include "reports/results/metrics.h"
#include "reports/results/report_data.h"

namespace trainyard::reports {

namespace {

using Texts = std::set<std::string>;

// "2 replicas × 2 stages × 2 parts, 1f1b, 4 micro-batches"; empty for one process.
std::string mesh_text(const db::RunSummary& run) {
  if (run.ranks() <= 1) return "";
  std::string text;
  if (run.replicas > 1)
    text = counted(run.replicas, experiments::is_independent(run.kind) ? "run" : "replica");
  if (experiments::is_independent(run.kind)) return text + " at once";
  if (run.servers > 0)
    return text + (text.empty() ? "1 replica" : "") + " and " + counted(run.servers, "server");
  for (const auto& [count, noun] : {std::pair(run.stages, "stage"), std::pair(run.tensor, "part")})
    if (count > 1) text += (text.empty() ? "" : " × ") + counted(count, noun);
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
  const bool has_range = std::ranges::any_of(
      data.plan.compare, [](const experiments::Compare& compare) { return compare.seeds.has_value(); });
  for (const char* other : {"running", "interrupted", "planned"})
    if (status[other] > 0)
      text += fmt::format(", {} {}{}", status[other], other,
                          has_range && std::string_view(other) == "planned" ? " and not trained" : "");
  return text;
}

// Runs of earlier plans that are not in the latest plan are counted separately.
std::string runs_text(const ReportData& data) {
  const std::string before = counts_text(data, false);
  return counts_text(data, true) +
         (before.empty() ? "" : "; planned before, not in the latest plan: " + before);
}

std::string data_text(const ReportData&, const db::RunSummary& run) {
  const bool replaced = !run.data_source.empty() && run.data_source != run.dataset;
  return run.dataset + (replaced ? " (stand-in: " + run.data_source + ")" : "");
}

std::string strategy_text(const ReportData&, const db::RunSummary& run) {
  const std::string mesh = mesh_text(run);
  return mesh.empty() ? "" : fmt::format("{}: {}", run.strategy, mesh);
}

// "cifar10: 2000 of 40000".
std::string samples_text(const ReportData& data, const db::RunSummary& run) {
  const Launched* launched = value_or_null(data.launched, run.run_key);
  const std::int64_t all = launched == nullptr ? 0 : launched->available_samples;
  const std::string used = value_of(run, "train_samples");
  if (all > 0) return fmt::format("{}: {} {}", run.dataset, used.empty() ? "all" : used + " of", all);
  return used.empty() ? "" : run.dataset + ": " + used;
}

// "MLP 235146": those of all stages of one replica.
std::string parameters_text(const ReportData& data, const db::RunSummary& run) {
  const db::RunEvidence* evidence = value_or_null(data.evidence, run.run_key);
  if (evidence == nullptr) return "";
  std::int64_t sum = 0;
  for (const db::RunEvidence::Rank& rank : evidence->ranks)
    if (rank.replica == 0) sum += rank.parameters;
  return sum > 0 ? fmt::format("{} {}", title_of(run), sum) : "";
}

// "VAE: 1 reconstruction, 2 kl".
std::string loss_parts_text(const ReportData&, const db::RunSummary& run) {
  std::vector<std::string> parts;
  for (const std::string& name : run.loss_parts)
    parts.push_back(fmt::format("{} {}", parts.size() + 1, name));
  return parts.empty() ? "" : fmt::format("{}: {}", title_of(run), joined(parts));
}

// All texts of the runs, of their launches, or of the ranks that have recorded them.
std::string of_runs(const ReportData& data, std::string (*text_of)(const ReportData&, const db::RunSummary&),
                    std::string_view between) {
  Texts texts;
  for (const db::RunSummary& run : data.runs) texts.insert(text_of(data, run));
  texts.erase("");
  return joined(texts, {}, between);
}

template <typename TextOf>
std::string of_launches(const ReportData& data, const TextOf& text_of) {
  Texts texts;
  for (const auto& [key, launched] : data.launched) texts.insert(text_of(launched));
  return joined(texts);
}

template <typename TextOf>
std::string of_ranks(const ReportData& data, const TextOf& text_of) {
  Texts texts;
  for (const auto& [key, evidence] : data.evidence)
    for (const db::RunEvidence::Rank& rank : evidence.ranks) texts.insert(text_of(rank));
  texts.erase("");
  return joined(texts);
}

// A member of `hardware` in the `start` record; null if the rank did not record it.
nlohmann::json hardware_of(const db::RunEvidence::Rank& rank, const char* name) {
  const auto found = rank.start.find("hardware");
  return found != rank.start.end() && found->is_object() ? found->value(name, nlohmann::json()) : nullptr;
}

// "2 cores, 23.5 GiB".
std::string size_text(const db::RunEvidence::Rank& rank) {
  const nlohmann::json cores = hardware_of(rank, "cores"), bytes = hardware_of(rank, "memory_bytes");
  if (!cores.is_number_integer() || !bytes.is_number_integer()) return "";
  constexpr double gibibyte = 1 << 30;
  return fmt::format("{} cores, {:.1f} GiB", cores.get<int>(), bytes.get<double>() / gibibyte);
}

std::string system_text(const db::RunEvidence::Rank& rank) {
  const nlohmann::json system = hardware_of(rank, "system");
  return system.is_string() ? printable_line(system.get<std::string>()) : "";
}

}  // namespace

std::vector<std::pair<std::string, std::string>> provenance(const ReportData& data) {
  using Rank = db::RunEvidence::Rank;
  std::vector<std::pair<std::string, std::string>> result{
      {"Runs", runs_text(data)},
      {"Last record", last_record_time(data)},
      {"Data", of_runs(data, data_text, ", ")},
      {"Training samples", of_runs(data, samples_text, "; ")},
      {"Parameters", of_runs(data, parameters_text, ", ")},
      {"Parts of the loss", of_runs(data, loss_parts_text, "; ")},
      {"Strategies", of_runs(data, strategy_text, "; ")},
      {"Host", of_launches(data, [](const Launched& one) { return one.circumstances.host; })},
      {"Processor", of_launches(data, [](const Launched& one) { return one.circumstances.processor; })},
      {"Cores and memory", of_ranks(data, size_text)},
      {"System", of_ranks(data, system_text)},
      {"Release", of_launches(data, [](const Launched& one) { return one.circumstances.release; })},
      {"Commit", of_launches(data, [](const Launched& one) { return one.commit; })},
      {"LibTorch", of_ranks(data, [](const Rank& rank) { return rank.libtorch_version; })},
      {"Database", fmt::format("schema {}", data.schema_version)}};
  std::erase_if(result, [](const auto& entry) { return entry.second.empty(); });
  return result;
}

}  // namespace trainyard::reports
