// A metric that the user defines, in [metric.NAME] of the experiment file or in a `start` record
// (docs/record-protocol.md). Records have its values under its name.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace trainyard::experiments {

struct OwnMetric {
  std::string name;       // "tokens_per_second"
  std::string unit = {};  // "1/s"; empty: none
  bool higher_is_better = false;
  bool is_sum = false;  // over ranks; else their mean

  // Seconds, or something per second: it is judged as a time, because other processes change it.
  bool is_time() const;
  bool operator==(const OwnMetric&) const = default;
};

// Titles and units are printed in reports and tables: one line, 1 to 80 bytes of UTF-8.
bool is_title(const std::string& text);

// Why no metric can have this name: a predicate, as "must be …". Empty if one can.
std::string problem_of_metric_name(const std::string& name);

// {"tokens_per_second": {"unit": "1/s", "better": "higher", "combine": "sum"}}. Throws UserError with the wrong member.
nlohmann::json to_json(const std::vector<OwnMetric>& metrics);
std::vector<OwnMetric> own_metrics_from_json(const nlohmann::json& json);

}  // namespace trainyard::experiments
