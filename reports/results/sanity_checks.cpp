#include "reports/results/sanity_checks.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include <fmt/format.h>

#include "base/named_row.h"
#include "models/catalogue.h"
#include "models/tasks.h"
#include "reports/format/number_text.h"
#include "reports/format/words.h"
#include "reports/results/cells.h"
#include "reports/results/metrics.h"

namespace trainyard::reports {

namespace {

enum class Symptom { none, chance, constant, diverged, impossible };

constexpr double near_chance = 0.02;      // relative to ln classes
constexpr double chance_accuracy = 1.2;   // times 1/classes, at most
constexpr double constant_loss = 1e-4;    // relative change over all epochs
constexpr std::size_t fewest_epochs = 3;  // for a constant loss

// Number of classes; 0 if the task has none.
double classes_of(const db::RunSummary& run) {
  const models::Model* model = row_or_null(models::catalogue(), &models::Model::name, run.model);
  if (!run.model_title.empty() || model == nullptr || !models::has_chance_level(model->task)) return 0;
  const auto* dataset = row_or_null(models::datasets(), &models::Dataset::name, run.dataset);
  return dataset == nullptr ? 0 : static_cast<double>(dataset->classes);
}

bool is_at_chance(const db::EpochRow& last, double classes) {
  if (classes < 2) return false;
  const bool loss = std::abs(last["train_loss"] / std::log(classes) - 1) <= near_chance;
  return loss && last["train_accuracy"] <= chance_accuracy / classes;
}

bool is_constant_loss(const std::vector<const db::EpochRow*>& epochs) {
  if (epochs.size() < fewest_epochs) return false;
  const auto [least, most] = std::ranges::minmax_element(
      epochs, {}, [](const db::EpochRow* epoch) { return (*epoch)["train_loss"]; });
  return (**most)["train_loss"] - (**least)["train_loss"] <= constant_loss * std::abs((**most)["train_loss"]);
}

// Values that no training can have. Only a foreign arm may record them.
bool is_impossible(const db::EpochRow& epoch) {
  return epoch["train_accuracy"] > 1 || epoch["validation_accuracy"] > 1 || epoch["train_seconds"] < 0 ||
         epoch["validation_seconds"] < 0;
}

Symptom symptom_of(const db::RunSummary& run, const std::vector<const db::EpochRow*>& epochs) {
  const db::EpochRow& last = *epochs.back();
  const bool no_number = std::isinf(last["train_loss"]) ||
                         (std::isnan(last["train_loss"]) && known_to_have(run, find_metric("train-loss")));
  if (no_number) return Symptom::diverged;
  if (is_impossible(last)) return Symptom::impossible;
  if (is_at_chance(last, classes_of(run))) return Symptom::chance;
  return is_constant_loss(epochs) ? Symptom::constant : Symptom::none;
}

std::string text_of(Symptom symptom, double classes) {
  switch (symptom) {
    case Symptom::chance:
      return fmt::format(
          "at chance: the training loss stays at ln {} = {} and the accuracy at 1/{}, so nothing was learnt",
          plain_number(classes), fixed(std::log(classes), 3), plain_number(classes));
    case Symptom::constant:
      return "constant: the training loss is the same in every epoch";
    case Symptom::diverged:
      return "diverged: the training loss is not finite";
    case Symptom::impossible:
      return "implausible: an accuracy is above 100 % or a time is negative";
    case Symptom::none:
      break;
  }
  return "";
}

std::string verb_of(Symptom symptom, std::size_t runs) {
  if (symptom == Symptom::diverged) return runs == 1 ? " has " : " have ";
  return runs == 1 ? " is " : " are ";
}

struct SymptomCount {
  std::size_t runs = 0;
  std::map<Symptom, std::size_t> having;
  double classes = 0;
};

}  // namespace

std::vector<std::string> training_symptoms(const ReportData& data) {
  std::map<std::string, std::vector<const db::EpochRow*>> epochs;
  for (const db::EpochRow& epoch : data.averages) epochs[epoch.run_key].push_back(&epoch);
  std::vector<std::pair<std::string, SymptomCount>> groups;
  for (const db::RunSummary& run : data.runs) {
    const auto found = epochs.find(run.run_key);
    if (found == epochs.end() || run.status != "finished") continue;
    const std::string name = fmt::format("{} {}", title_of(run), run.strategy);
    SymptomCount& group = value_of_key(groups, name);
    ++group.runs;
    ++group.having[symptom_of(run, found->second)];
    group.classes = classes_of(run);
  }
  std::vector<std::pair<std::string, std::vector<std::string>>> names_by_text;  // one entry per text
  for (const auto& [name, group] : groups)
    for (const auto& [symptom, count] : group.having) {
      if (symptom == Symptom::none) continue;
      const std::string text =
          fmt::format("{} of {}{}{}{}.", count, group.runs, group.runs == 1 ? " run" : " runs",
                      verb_of(symptom, count), text_of(symptom, group.classes));
      value_of_key(names_by_text, text).push_back(name);
    }
  std::vector<std::string> lines;
  for (const ReportData* one : experiments_of(data))
    for (const std::string& text : one->odd_metrics) lines.push_back(text + ".");
  for (const auto& [text, names] : names_by_text) lines.push_back(first_and_others(names) + ": " + text);
  return lines;
}

namespace {

std::vector<CheckedExpectation> check_one(const ReportData& data) {
  const std::set<std::string> planned(data.plan.keys.begin(), data.plan.keys.end());
  std::map<std::string, const db::FinalMetrics*> finals;
  for (const db::FinalMetrics& final : data.finals) finals[final.run_key] = &final;
  std::vector<CheckedExpectation> checked;
  for (const experiments::Expectation& expectation : data.plan.expect) {
    CheckedExpectation result;
    result.expectation = expectation;
    result.title = title_of(expectation.model);
    const std::string metric = experiments::metric_name(expectation);
    const auto row = std::ranges::find(metrics(), metric, &Metric::column);
    for (const db::RunSummary& run : data.runs) {
      const auto final = finals.find(run.run_key);
      if (run.model == expectation.model) result.title = title_of(run);
      if (run.model != expectation.model || final == finals.end() || !planned.contains(run.run_key)) continue;
      const double value = row == metrics().end() ? std::nan("") : (*final->second)[final_column(*row)];
      result.values.push_back(value);
      if (experiments::holds(expectation, value)) continue;
      result.missed.push_back(fmt::format("{} ({}) has {} {}", name_of(run, run.model, data.plan.varied),
                                          run.run_key, metric, for_table(value)));
    }
    checked.push_back(std::move(result));
  }
  return checked;
}

}  // namespace

std::vector<CheckedExpectation> check_expectations(const ReportData& data) {
  std::vector<CheckedExpectation> all;
  for (const ReportData* one : experiments_of(data))
    for (CheckedExpectation& checked : check_one(*one)) {
      if (!data.parts.empty()) checked.experiment = one->experiment;
      all.push_back(std::move(checked));
    }
  return all;
}

}  // namespace trainyard::reports
