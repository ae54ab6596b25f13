// The numbers of a run or an epoch, by their column names in the views: "train_loss". The names come from the
// tables of models/metrics.h.
#pragma once

#include <array>
#include <cstddef>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "models/metrics.h"

namespace trainyard::db {

inline constexpr double not_defined = std::numeric_limits<double>::quiet_NaN();

// A resolved column name. A literal that is not a column does not compile.
class MetricColumn {
 public:
  consteval MetricColumn(const char* name) : place_(place_of(name)) {
    if (place_ == count) throw "no number has this name";
  }
  static MetricColumn named(std::string_view name) {  // InternalError if there is no such column
    const std::size_t place = place_of(name);
    if (place == count) throw InternalError("no metric is called " + std::string(name));
    return MetricColumn(place);
  }
  // A metric of the user, or of a file that trainyard did not make: `i` from 0.
  static MetricColumn own(std::size_t i) { return MetricColumn(count + i); }
  bool operator==(const MetricColumn&) const = default;

 private:
  friend class MetricValues;
  static constexpr std::size_t of_metrics = models::all_metrics.size() * models::phases.size();
  static constexpr std::size_t of_costs = 2 * models::all_costs.size();
  static constexpr std::size_t count = of_metrics + of_costs + 1;

  explicit constexpr MetricColumn(std::size_t place) : place_(place) {}

  // Order: metrics, each cost for a run and for an epoch, memory. `count` if there is no such name.
  static constexpr std::size_t place_of(std::string_view name) {
    for (std::size_t i = 0; i < of_metrics; ++i) {
      const std::string_view phase = models::phases[i % models::phases.size()];
      if (name.starts_with(phase) && name.substr(phase.size()).starts_with('_') &&
          name.substr(phase.size() + 1) == models::all_metrics[i / models::phases.size()].name)
        return i;
    }
    for (std::size_t i = 0; i < models::all_costs.size(); ++i) {
      if (name == models::all_costs[i].final_column) return of_metrics + 2 * i;
      if (name == models::all_costs[i].epoch_column) return of_metrics + 2 * i + 1;
    }
    return name == "peak_device_bytes" ? count - 1 : count;
  }

  std::size_t place_ = 0;
};

class MetricValues {
 public:
  MetricValues() { numbers_.fill(not_defined); }
  double operator[](MetricColumn column) const {
    return column.place_ < numbers_.size() ? numbers_[column.place_] : own_number(column.place_);
  }
  double& operator[](MetricColumn column) {
    return column.place_ < numbers_.size() ? numbers_[column.place_] : own_[column.place_];
  }

 private:
  double own_number(std::size_t place) const {
    const auto found = own_.find(place);
    return found == own_.end() ? not_defined : found->second;
  }

  std::array<double, MetricColumn::count> numbers_;
  std::map<std::size_t, double> own_;  // by place
};

struct NamedColumn {
  std::string name;
  MetricColumn column;
};
// The numeric columns of task_epoch_average and of task_final_metrics, not in the order of the views.
const std::vector<NamedColumn>& epoch_columns();
const std::vector<NamedColumn>& final_columns();

}  // namespace trainyard::db
