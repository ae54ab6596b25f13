#include "experiments/design/compare.h"

#include <nlohmann/json.hpp>

#include "base/error.h"

namespace trainyard::experiments {

nlohmann::json to_json(const Compare& compare) {
  return {{"alpha", compare.alpha},
          {"axis", compare.axis},
          {"baseline", compare.baseline},
          {"differs", compare.differs},
          {"final", compare.final_look},
          {"margins",
           {{"accuracy_points", compare.margins.accuracy_points},
            {"loss", {{"absolute", compare.margins.loss.absolute}, {"ratio", compare.margins.loss.ratio}}},
            {"time", compare.margins.time}}},
          {"pair", compare.pair}};
}

Compare compare_from_json(const nlohmann::json& json) try {
  Compare compare;
  json.at("alpha").get_to(compare.alpha);
  json.at("axis").get_to(compare.axis);
  json.at("baseline").get_to(compare.baseline);
  json.at("differs").get_to(compare.differs);
  json.at("final").get_to(compare.final_look);
  const nlohmann::json& margins = json.at("margins");
  margins.at("accuracy_points").get_to(compare.margins.accuracy_points);
  margins.at("loss").at("absolute").get_to(compare.margins.loss.absolute);
  margins.at("loss").at("ratio").get_to(compare.margins.loss.ratio);
  margins.at("time").get_to(compare.margins.time);
  json.at("pair").get_to(compare.pair);
  return compare;
} catch (const nlohmann::json::exception& error) {
  throw InternalError(std::string("not the JSON of a comparison: ") + error.what());
}

}  // namespace trainyard::experiments
