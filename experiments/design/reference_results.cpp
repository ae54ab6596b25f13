#include "experiments/design/reference_results.h"

#include <nlohmann/json.hpp>

#include "base/error.h"

namespace trainyard::experiments {

void to_json(nlohmann::json& to, const PublishedPoint& point) {
  to = {point.epoch, point.value};
}

void from_json(const nlohmann::json& from, PublishedPoint& point) {
  from.at(0).get_to(point.epoch);
  from.at(1).get_to(point.value);
}

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(PublishedSeries, arm, metric, model, points)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(PublishedVerdict, arm, effect, metric, model)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(PublishedTable, at, axis, note, numbers, repeats, title, values)
// Journals of earlier releases have no `dataset` and no `tables`.
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(PublishedSource, dataset, hardware, name, series, sizes,
                                                tables, verdicts)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Published, file, sources, text)

nlohmann::json to_json(const Published& published) {
  return published;
}

Published published_from_json(const nlohmann::json& object) try {
  return object.get<Published>();
} catch (const nlohmann::json::exception& error) {
  throw InternalError(std::string("not the JSON of published numbers: ") + error.what());
}

}  // namespace trainyard::experiments
