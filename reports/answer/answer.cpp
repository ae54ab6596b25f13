#include "reports/answer/answer.h"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "base/text.h"
#include "reports/answer/names.h"
#include "reports/answer/verdict_text.h"
#include "reports/format/words.h"

namespace trainyard::reports {

std::string subtitle(const Comparison& comparison) {
  const experiments::Compare& compare = comparison.compare;
  const std::vector<std::string> arms = arms_of(comparison);
  const std::string on = some_of(cell_names(comparison));
  const std::string what =
      arms.empty() ? "compared with " + compare.baseline : some_of(arms) + " against " + compare.baseline;
  const std::string axis = compare.axis == "group" ? "the choice of runs" : with_spaces(compare.axis);
  return fmt::format("Effect of {} ({}){}", axis, what, with_label(" on ", on));
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

std::string value_in(const std::vector<std::pair<std::string, std::string>>& provenance, const char* name) {
  const auto found = std::ranges::find(provenance, name, &std::pair<std::string, std::string>::first);
  return found == provenance.end() ? "" : found->second;
}

std::string comma(std::vector<std::string> texts) {
  std::erase(texts, "");
  return joined(texts);
}

// "5 seeds per arm, 3 epochs".
std::string sizes_text(const Report& report) {
  std::map<std::string, std::int64_t> epochs_of_run;
  for (const RunRow& run : report.runs) epochs_of_run[run.key] = run.epochs;
  std::set<std::int64_t> seeds;
  std::set<std::int64_t> epochs;
  bool paired = true;
  for (const Comparison& comparison : report.comparisons) {
    paired = paired && comparison.compare.pair == std::vector<std::string>{"seed"};
    for (const Cell& cell : comparison.cells) {
      const auto add = [&](const Arm& arm) {
        if (!arm.runs.empty()) seeds.insert(static_cast<std::int64_t>(arm.runs.size()));
        for (const ArmRun& run : arm.runs) epochs.insert(epochs_of_run[run.key]);
      };
      add(cell.baseline);
      std::ranges::for_each(cell.arms, add);
    }
  }
  const std::string runs = counted_range(seeds, paired ? "seed" : "run");
  return comma({runs.empty() ? "no runs" : runs + " per arm", counted_range(epochs, "epoch")});
}

std::string device_text(const std::string& device) {
  return device == "cpu" ? "the CPU" : device == "cuda" ? "GPUs (CUDA)" : device;
}

// "Trained on the CPU", "Trained on GPUs (CUDA)", "single on the CPU, ddp on GPUs (CUDA)".
std::string trained_on(const Report& report) {
  if (report.devices.empty()) return report.has_records ? "CPU or GPU: not recorded" : "";
  if (report.devices.size() == 1) return "Trained on " + device_text(report.devices.front().device);
  return joined(report.devices, [](const DeviceUse& use) {
    return fmt::format("{} on {}", all_of(use.strategies), device_text(use.device));
  });
}

std::string sentences(std::vector<std::string> texts) {
  std::erase(texts, "");
  return joined(
      texts, [](const std::string& text) { return text + "."; }, " ");
}

}  // namespace

std::vector<std::string> answer_facts(const Answer& answer) {
  std::vector<std::string> facts;
  for (const std::string& published : answer.published) facts.push_back("Published study: " + published);
  facts.push_back("Machine: " + answer.machine);
  return facts;
}

Answer make_answer(const Report& report) {
  Answer answer;
  for (const Comparison& comparison : report.comparisons)
    answer.paragraphs.push_back(answer_paragraphs(comparison));
  answer.published = published_answers(report);
  const auto known = [&](const char* name) { return value_in(report.provenance, name); };
  answer.compared =
      sentences({sizes_text(report), with_label("Data: ", known("Data")),
                 with_label("Strategies: ", known("Strategies")), with_label("Runs: ", known("Runs"))});
  answer.machine = sentences(
      {comma({known("Host"), known("Processor")}), trained_on(report),
       comma({with_label("trainyard ", known("Release")), with_label("LibTorch ", known("LibTorch"))})});
  return answer;
}

}  // namespace trainyard::reports
