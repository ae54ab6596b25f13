#include "reports/cells.h"

#include <algorithm>
#include <map>
#include <set>

#include "reports/metrics.h"

namespace trainyard::reports {

namespace {

using Further = std::vector<std::pair<std::string, std::string>>;

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

// Values that make the cell, beside the model: varied, neither compared nor paired over.
std::vector<std::string> further_names(const ReportData& data, const experiments::Compare& compare) {
  std::set<std::string> names;
  for (const std::string& name : data.plan.varied) {
    const bool other = name != compare.axis && name != "model" && !contains(compare.pair, name);
    // Seeds are the replicates, also where the arms are not paired by them.
    if (other && name != "seed") names.insert(name);
  }
  return {names.begin(), names.end()};
}

Further further_of(const db::RunSummary& run, const std::vector<std::string>& names) {
  Further further;
  for (const std::string& name : names) further.emplace_back(name, value_of(run, name));
  return further;
}

std::string pair_of(const db::RunSummary& run, const experiments::Compare& compare) {
  if (compare.pair.empty()) return run.run_key;
  if (compare.pair.size() == 1) return value_of(run, compare.pair.front());
  std::string text;
  for (const std::string& name : compare.pair) {
    text += (text.empty() ? "" : " ") + name + "=" + value_of(run, name);
  }
  return text;
}

std::string label_of(const std::string& title, const Further& further) {
  std::string text = title.empty() ? "all models" : title;
  for (const auto& [name, value] : further) text.append(", ").append(name).append(" ").append(value);
  return text;
}

class CellBuilder {
 public:
  CellBuilder(const ReportData& data, const experiments::Compare& compare)
      : compare_(compare), names_(further_names(data, compare)) {
    planned_.insert(data.plan.keys.begin(), data.plan.keys.end());
    for (const db::FinalMetrics& final : data.finals) finals_[final.run_key] = &final;
    for (const db::RunSummary& run : data.runs) {
      if (planned_.count(run.run_key) != 0) touched_.insert(id_of(run));
    }
  }

  void add(const db::RunSummary& run, const ReportData& data) {
    const bool planned = planned_.count(run.run_key) != 0;
    if (!planned && touched_.count(id_of(run)) != 0) return;
    Observation observation{pair_of(run, compare_), &run, nullptr, nullptr, planned};
    if (const auto found = finals_.find(run.run_key); found != finals_.end())
      observation.final = found->second;
    if (const auto found = data.launched.find(run.run_key); found != data.launched.end()) {
      observation.launched = &found->second;
    }
    place(arm_for(cell_for(run), value_of(run, compare_.axis)), observation);
  }

  std::vector<Cell> result() {
    std::set<std::string> used;
    for (Cell& cell : cells_) {
      const std::string slug = slug_of(label_of(cell.model, cell.further));
      cell.slug = slug;
      for (int i = 2; !used.insert(cell.slug).second; ++i) cell.slug = slug + "-" + std::to_string(i);
    }
    return std::move(cells_);
  }

 private:
  std::pair<std::string, Further> id_of(const db::RunSummary& run) const {
    return {compare_.axis == "model" ? "" : run.model, further_of(run, names_)};
  }

  Cell& cell_for(const db::RunSummary& run) {
    const auto [model, further] = id_of(run);
    for (Cell& cell : cells_) {
      if (cell.model == model && cell.further == further) return cell;
    }
    Cell cell;
    cell.model = model;
    cell.further = further;
    cell.label = label_of(title_of(model), further);
    cell.baseline.value = compare_.baseline;
    cells_.push_back(std::move(cell));
    return cells_.back();
  }

  static Arm& arm_for(Cell& cell, const std::string& value) {
    if (value == cell.baseline.value) return cell.baseline;
    for (Arm& arm : cell.arms) {
      if (arm.value == value) return arm;
    }
    cell.arms.push_back({value, {}});
    return cell.arms.back();
  }

  // A later run with the same pairing values stands for an earlier one (planned again with other epochs,
  // say).
  static void place(Arm& arm, const Observation& observation) {
    for (Observation& earlier : arm.runs) {
      if (earlier.pair == observation.pair) {
        earlier = observation;
        return;
      }
    }
    arm.runs.push_back(observation);
  }

  const experiments::Compare& compare_;
  std::vector<std::string> names_;
  std::set<std::string> planned_;
  std::set<std::pair<std::string, Further>> touched_;
  std::map<std::string, const db::FinalMetrics*> finals_;
  std::vector<Cell> cells_;
};

}  // namespace

std::vector<Cell> make_cells(const ReportData& data, const experiments::Compare& compare) {
  CellBuilder builder(data, compare);
  for (const db::RunSummary& run : data.runs) builder.add(run, data);
  return builder.result();
}

std::string value_of(const db::RunSummary& run, const std::string& name) {
  if (name == "model") return run.model;
  if (name == "strategy") return run.strategy;
  if (name == "seed") return std::to_string(run.seed);
  const auto found = run.axes.find(name);
  if (found == run.axes.end()) return "";
  if (const auto* text = std::get_if<std::string>(&found->second)) return *text;
  return models::to_text(found->second);
}

std::string slug_of(const std::string& text) {
  std::string slug;
  for (const char character : text) {
    const bool upper = character >= 'A' && character <= 'Z';
    const bool plain = (character >= 'a' && character <= 'z') || (character >= '0' && character <= '9') ||
                       (character == '.' && !slug.empty());
    if (upper) {
      slug += static_cast<char>(character - 'A' + 'a');
    } else if (plain) {
      slug += character;
    } else if (!slug.empty() && slug.back() != '-') {
      slug += '-';
    }
  }
  while (!slug.empty() && slug.back() == '-') slug.pop_back();
  return slug.empty() ? "cell" : slug;
}

}  // namespace trainyard::reports
