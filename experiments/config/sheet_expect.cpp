// [expect.MODEL]: metric = number, or { at_least = …, at_most = … }.
#include <algorithm>
#include <cmath>

#include "base/joined.h"
#include "experiments/config/sheet.h"
#include "experiments/config/vocabulary.h"

namespace trainyard::experiments {

namespace {

// Every metric of the model's task by its name in the file.
struct Choice {
  std::string phase;
  const ExpectedMetric* metric = nullptr;
  std::string name() const { return phase + '_' + metric->name; }
};

std::vector<Choice> choices_of(const models::Model& model) {
  std::vector<Choice> choices;
  for (const ExpectedMetric& metric : expected_metrics()) {
    const bool any_task = is_declared(model) && model.task.empty();
    if (any_task && metric.name != "loss" && metric.name != "accuracy") continue;
    if (!any_task && std::find(metric.tasks.begin(), metric.tasks.end(), model.task) == metric.tasks.end())
      continue;
    for (const char* phase : {"test", "validation", "train"})
      if (!metric.test_only || phase == std::string("test")) choices.push_back({phase, &metric});
  }
  return choices;
}

bool is_metric(const std::string& name) {
  for (const ExpectedMetric& metric : expected_metrics())
    for (const char* phase : {"test_", "validation_", "train_"})
      if (name == phase + metric.name) return true;
  return false;
}

void report_no_metric(const Member& member, const models::Model& model, const std::vector<Choice>& choices,
                      Problems& problems) {
  std::vector<std::string> known;
  known.reserve(choices.size());
  for (const Choice& choice : choices) known.push_back(choice.name());
  if (!is_metric(member.name)) return report_unknown(member, "[expect." + model.name + "]", known, problems);
  problems.error(member.at, member.name + " is not defined for model " + in_quotes(model.name) + " (" +
                                (model.task.empty() ? "no task" : model.task) + "); known are " +
                                models::joined(known));
}

std::optional<double> read_bound(const std::string& name, const ExpectedMetric& metric, const Item& item,
                                 Problems& problems) {
  models::Parameter parameter;
  parameter.name = name;
  parameter.type = models::ValueType::number;
  if (metric.is_fraction) {  // 90 would be missed by every run
    parameter.minimum = models::Bound{0};
    parameter.maximum = models::Bound{1};
  }
  if (metric.is_score) {
    parameter.minimum = models::Bound{0};
    parameter.maximum = models::Bound{100};
  }
  const auto value = checked_value(parameter, item, problems);
  if (!value) return std::nullopt;
  const double bound = std::get<double>(*value);
  // A fraction is meant: every run would pass it.
  if (metric.is_score && bound > 0 && bound < 1)
    problems.error(item.at,
                   metric.name + " is a score from 0 to 100, and this is less than 1: for the fraction " +
                       models::to_text(bound) + " write " + models::to_text(std::round(1e8 * bound) / 1e6));
  return bound;
}

void read_bounds(const Item& item, const ExpectedMetric& metric, Expectation& expectation,
                 Problems& problems) {
  if (item.table()->empty())
    problems.error(item.at, "a threshold must have at_least or at_most, as in { at_least = 0.9 }");
  for (const Member& member : *item.table()) {
    if (member.name == "at_least")
      expectation.at_least = read_bound(member.name, metric, member.value, problems);
    else if (member.name == "at_most")
      expectation.at_most = read_bound(member.name, metric, member.value, problems);
    else
      report_unknown(member, metric_name(expectation), {"at_least", "at_most"}, problems);
  }
  if (expectation.at_least && expectation.at_most && *expectation.at_least > *expectation.at_most)
    problems.error(item.at, "at_least is more than at_most: no value is expected");
}

void read_line(const Member& member, const models::Model& model, std::vector<ExpectedLine>& lines,
               Problems& problems) {
  const std::vector<Choice> choices = choices_of(model);
  const auto choice = std::find_if(choices.begin(), choices.end(),
                                   [&](const Choice& each) { return each.name() == member.name; });
  if (choice == choices.end()) return report_no_metric(member, model, choices, problems);
  Expectation expectation;
  expectation.model = model.name;
  expectation.phase = choice->phase;
  expectation.metric = choice->metric->name;
  if (member.value.table() != nullptr) {
    read_bounds(member.value, *choice->metric, expectation, problems);
  } else {
    auto& bound = choice->metric->more_is_better ? expectation.at_least : expectation.at_most;
    bound = read_bound("a threshold", *choice->metric, member.value, problems);
  }
  if (expectation.at_least || expectation.at_most) lines.push_back({expectation, member.at});
}

}  // namespace

std::vector<ExpectedLine> read_expect(const Member& section, const Declared& declared, Problems& problems) {
  std::vector<ExpectedLine> lines;
  const Item::Table* members = section_table(section, "[expect.*]", problems);
  if (members == nullptr) return lines;
  for (const Member& member : *members) {
    const models::Model* model = model_or_null(member.name, declared);
    if (model == nullptr) {
      report_no_model(member, declared, problems);
    } else if (const Item::Table* table = section_table(member, "[expect." + member.name + "]", problems)) {
      for (const Member& line : *table) read_line(line, *model, lines, problems);
    }
  }
  return lines;
}

}  // namespace trainyard::experiments
