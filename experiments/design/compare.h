// What an experiment compares and by which margins: the `[[compare]]` tables of a file, resolved. The journal
// keeps it as JSON, `reports` reads it back from the database.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace trainyard::experiments {

struct LossMargin {
  double ratio = 1.02;
  double absolute = 0.005;
};

struct Margins {
  double time = 1.05;  // a ratio
  LossMargin loss;
  double accuracy_points = 0.5;  // percentage points
};

struct Compare {
  std::string axis = "strategy";
  std::string baseline = "single";        // text of the axis value
  std::vector<std::string> pair{"seed"};  // empty = unpaired
  Margins margins;
  double alpha = 0.05;
  bool final_look = false;  // TOML `final`
  std::vector<std::string> differs;
};

nlohmann::json to_json(const Compare& compare);
Compare compare_from_json(const nlohmann::json& json);

}  // namespace trainyard::experiments
