#include "reports/answer/answer.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "base/text.h"
#include "reports/answer/names.h"
#include "reports/answer/published_study.h"
#include "reports/format/words.h"
#include "reports/verdicts/verdict_text.h"

namespace trainyard::reports {

std::string subtitle(const Comparison& comparison) {
  const experiments::Compare& compare = comparison.compare;
  const std::vector<std::string> arms = arms_of(comparison);
  const std::string on = CellNames(comparison).all();
  const std::string what =
      arms.empty() ? "compared with " + compare.baseline : some_of(arms) + " against " + compare.baseline;
  return fmt::format("Effect of {} ({}){}{}",
                     compare.axis == "group" ? "the choice of runs" : with_spaces(compare.axis), what,
                     on.empty() ? "" : " on ", on);
}

std::string shape_explanation(const Comparison& comparison) {
  const auto margin = [&](MetricKind kind) {
    return margin_of(published_metric(kind), comparison.compare.margins);
  };
  return fmt::format(
      "Models by verdict: each model is in the row of its verdict on validation accuracy ({}), "
      "validation loss ({}) and training time per epoch ({}).",
      margin(MetricKind::accuracy), margin(MetricKind::loss), margin(MetricKind::time));
}

namespace {

// "3", "3 – 5"; empty without values.
std::string range_of(const std::set<std::int64_t>& values) {
  if (values.empty()) return "";
  if (values.size() == 1) return std::to_string(*values.begin());
  return fmt::format("{} – {}", *values.begin(), *values.rbegin());
}

std::string counted_range(const std::set<std::int64_t>& values, const std::string& noun) {
  if (values.empty()) return "";
  return range_of(values) + " " + noun + (*values.rbegin() == 1 ? "" : "s");
}

std::string value_in(const std::vector<std::pair<std::string, std::string>>& provenance, const char* name) {
  const auto found = std::ranges::find(provenance, name, &std::pair<std::string, std::string>::first);
  return found == provenance.end() ? "" : found->second;
}

// "a, b", without empty texts.
std::string comma(const std::vector<std::string>& texts) {
  std::string all;
  for (const std::string& text : texts) all += (all.empty() || text.empty() ? "" : ", ") + text;
  return all;
}

// "5 seeds per arm, 3 epochs".
std::string sizes_text(const std::vector<Comparison>& comparisons) {
  std::set<std::int64_t> seeds;
  std::set<std::int64_t> epochs;
  bool paired = true;
  for (const Comparison& comparison : comparisons) {
    paired = paired && comparison.compare.pair == std::vector<std::string>{"seed"};
    for (const CellVerdicts& judged : comparison.cells) {
      const auto add = [&](const Arm& arm) {
        if (!arm.runs.empty()) seeds.insert(static_cast<std::int64_t>(arm.runs.size()));
        for (const Observation& observation : arm.runs) epochs.insert(observation.run->epochs);
      };
      add(judged.cell.baseline);
      std::ranges::for_each(judged.cell.arms, add);
    }
  }
  const std::string runs = counted_range(seeds, paired ? "seed" : "run");
  return comma({runs.empty() ? "no runs" : runs + " per arm", counted_range(epochs, "epoch")});
}

// "Trained on the CPU", "Trained on GPUs (CUDA)", "single on the CPU, ddp on GPUs (CUDA)".
std::string trained_on(const ReportData& data) {
  std::vector<std::pair<std::string, std::vector<std::string>>> strategies_by_device;
  for (const db::RunSummary& run : data.runs) {
    const auto evidence = data.evidence.find(run.run_key);
    if (evidence == data.evidence.end()) continue;
    for (const db::RunEvidence::Rank& rank : evidence->second.ranks) {
      const std::string kind = rank.device.substr(0, rank.device.find(':'));
      if (kind.empty()) continue;
      const std::string device = kind == "cpu" ? "the CPU" : kind == "cuda" ? "GPUs (CUDA)" : kind;
      auto known = std::ranges::find(strategies_by_device, device,
                                     &std::pair<std::string, std::vector<std::string>>::first);
      if (known == strategies_by_device.end()) known = strategies_by_device.insert(known, {device, {}});
      if (std::ranges::find(known->second, run.strategy) == known->second.end())
        known->second.push_back(run.strategy);
    }
  }
  if (strategies_by_device.empty()) return data.evidence.empty() ? "" : "CPU or GPU: not recorded";
  if (strategies_by_device.size() == 1) return "Trained on " + strategies_by_device.front().first;
  std::vector<std::string> texts;
  texts.reserve(strategies_by_device.size());
  for (const auto& [device, strategies] : strategies_by_device)
    texts.push_back(fmt::format("{} on {}", all_of(strategies), device));
  return joined(texts);
}

std::string sentences(const std::vector<std::string>& texts) {
  std::string all;
  for (const std::string& text : texts)
    if (!text.empty()) all += (all.empty() ? "" : " ") + text + ".";
  return all;
}

}  // namespace

std::vector<std::string> answer_facts(const Answer& answer) {
  std::vector<std::string> facts;
  for (const std::string& published : answer.published) facts.push_back("Published study: " + published);
  facts.push_back("Machine: " + answer.machine);
  return facts;
}

Answer make_answer(const ReportData& data, const std::vector<Comparison>& comparisons,
                   const std::vector<std::pair<std::string, std::string>>& provenance) {
  Answer answer;
  for (const Comparison& comparison : comparisons) answer.paragraphs.push_back(answer_paragraphs(comparison));
  answer.published = published_answers(data, comparisons);
  answer.compared = sentences({sizes_text(comparisons), with_label("Data: ", value_in(provenance, "Data")),
                               with_label("Strategies: ", value_in(provenance, "Strategies")),
                               with_label("Runs: ", value_in(provenance, "Runs"))});
  answer.machine =
      sentences({comma({value_in(provenance, "Host"), value_in(provenance, "Processor")}), trained_on(data),
                 comma({with_label("trainyard ", value_in(provenance, "Release")),
                        with_label("LibTorch ", value_in(provenance, "LibTorch"))})});
  return answer;
}

}  // namespace trainyard::reports
