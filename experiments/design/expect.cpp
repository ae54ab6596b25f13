#include "experiments/design/expect.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/parameter.h"

namespace trainyard::experiments {

using nlohmann::json;

namespace {

std::string number_text(double number) {
  std::string text = models::to_text(number);
  if (text.ends_with(".0")) text.resize(text.size() - 2);
  return text;
}

std::optional<double> optional_number(const json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end()) return std::nullopt;
  return found->get<double>();
}

}  // namespace

const std::vector<ExpectedMetric>& expected_metrics() {
  static const std::vector<ExpectedMetric> rows{
      {.name = "loss", .tasks = {"classification", "reconstruction", "translation"}},
      {.name = "accuracy",
       .more_is_better = true,
       .is_fraction = true,
       .tasks = {"classification", "translation"}},
      {.name = "perplexity", .tasks = {"translation"}},
      {.name = "bleu", .more_is_better = true, .test_only = true, .is_score = true, .tasks = {"translation"}},
      {.name = "psnr", .more_is_better = true, .tasks = {"reconstruction"}}};
  return rows;
}

std::string metric_name(const Expectation& expectation) {
  return expectation.phase + '_' + expectation.metric;
}

std::string to_text(const Expectation& expectation) {
  std::string text = expectation.model + ": " + metric_name(expectation);
  if (expectation.at_least) text += " >= " + number_text(*expectation.at_least);
  if (expectation.at_least && expectation.at_most) text += " and";
  if (expectation.at_most) text += " <= " + number_text(*expectation.at_most);
  return text;
}

bool holds(const Expectation& expectation, double value) {
  if (expectation.at_least && !(value >= *expectation.at_least)) return false;
  return !expectation.at_most || value <= *expectation.at_most;
}

json to_json(const Expectation& expectation) {
  json object = {{"metric", expectation.metric}, {"model", expectation.model}, {"phase", expectation.phase}};
  if (expectation.at_least) object["at_least"] = *expectation.at_least;
  if (expectation.at_most) object["at_most"] = *expectation.at_most;
  return object;
}

Expectation expectation_from_json(const json& object) try {
  Expectation expectation;
  object.at("model").get_to(expectation.model);
  object.at("phase").get_to(expectation.phase);
  object.at("metric").get_to(expectation.metric);
  expectation.at_least = optional_number(object, "at_least");
  expectation.at_most = optional_number(object, "at_most");
  return expectation;
} catch (const json::exception& error) {
  throw InternalError(std::string("not the JSON of an expectation: ") + error.what());
}

}  // namespace trainyard::experiments
