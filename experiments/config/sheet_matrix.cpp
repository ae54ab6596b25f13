// [matrix]: lists of alternatives, zips, and seeds by number.
#include <algorithm>
#include <set>

#include "experiments/config/sheet.h"
#include "experiments/config/vocabulary.h"

namespace trainyard::experiments {

namespace {

using Names = std::set<std::string>;  // axes so far

const models::Parameter& count_parameter() {
  static const models::Parameter parameter = [] {
    models::Parameter row;
    row.name = "count";
    row.minimum = models::Bound{1};
    row.maximum = models::Bound{static_cast<double>(max_runs)};
    return row;
  }();
  return parameter;
}

bool is_new_axis(const Member& member, const std::string& where, const Declared& declared, Names& names,
                 Problems& problems) {
  if (run_parameter(member.name) == nullptr && !is_hyperparameter(member.name, declared)) {
    report_unknown(member, where, all_value_names(declared), problems);
    return false;
  }
  if (names.insert(member.name).second) return true;
  problems.error(member.at, member.name + " is already an axis of the matrix");
  return false;
}

std::vector<Setting> alternatives(const Member& member, const Declared& declared, Problems& problems) {
  std::vector<Setting> values;
  const Item::List* list = member.value.list();
  if (list == nullptr || list->empty()) {
    const std::string allowed = member.name == "seed" ? " or { count = n }" : "";
    problems.error(member.value.at, member.name + " must be a list of alternatives" + allowed + ", is " +
                                        description(member.value));
    return values;
  }
  for (const Item& item : *list)
    if (auto value = checked_value(member.name, item, declared, problems))
      values.push_back({std::move(*value), item.at});
  return values;
}

// { count = n }: 0 … n − 1.
std::vector<Setting> counted_seeds(const Item& item, Problems& problems) {
  std::vector<Setting> seeds;
  const std::size_t errors = problems.errors();
  std::optional<models::Value> count;
  for (const Member& member : *item.table()) {
    if (member.name == "count") {
      count = checked_value(count_parameter(), member.value, problems);
    } else {
      report_unknown(member, "seed", {"count"}, problems);
    }
  }
  if (problems.errors() == errors && !count)
    problems.error(item.at, "seed must be a list of seeds or { count = n }");
  const std::int64_t end = count ? std::get<std::int64_t>(*count) : 0;
  for (std::int64_t seed = 0; seed < end; ++seed) seeds.push_back({seed, item.at});
  return seeds;
}

// Without values where it is wrong.
Axis read_axis(const Member& member, const std::string& where, const Declared& declared, Names& names,
               Problems& problems) {
  Axis axis{member.name, member.at, {}};
  if (!is_new_axis(member, where, declared, names, problems)) return axis;
  const bool counted = member.name == "seed" && member.value.table() != nullptr;
  axis.values = counted ? counted_seeds(member.value, problems) : alternatives(member, declared, problems);
  return axis;
}

// Reports values that come twice, and leaves the second out.
void drop_repeated_values(Axis& axis, Problems& problems) {
  std::set<models::Value> seen;
  std::erase_if(axis.values, [&](const Setting& setting) {
    if (seen.insert(setting.value).second) return false;
    problems.error(setting.at, axis.name + " has " + models::to_text(setting.value) + " twice");
    return true;
  });
}

bool equally_long(const Dimension& dimension, Problems& problems) {
  const Axis& first = dimension.front();
  for (const Axis& axis : dimension) {
    if (axis.values.size() == first.values.size()) continue;
    problems.error(axis.at, "the lists of a zip must be equally long: " + axis.name + " has length " +
                                std::to_string(axis.values.size()) + ", " + first.name + " " +
                                std::to_string(first.values.size()));
    return false;
  }
  return true;
}

// Empty where it is wrong.
Dimension read_zip(const Item& group, const Declared& declared, Names& names, Problems& problems) {
  Dimension dimension;
  if (group.table() == nullptr || group.table()->empty()) {
    problems.error(group.at, "a zip must be a table of equally long lists, is " +
                                 (group.table() ? std::string("empty") : description(group)));
    return dimension;
  }
  const std::size_t errors = problems.errors();
  for (const Member& member : *group.table())
    dimension.push_back(read_axis(member, "zip", declared, names, problems));
  if (problems.errors() > errors || !equally_long(dimension, problems)) dimension.clear();
  return dimension;
}

std::vector<Dimension> read_zips(const Member& member, const Declared& declared, Names& names,
                                 Problems& problems) {
  std::vector<Dimension> dimensions;
  const Item::List* list = member.value.list();
  if (list == nullptr) {
    problems.error(member.value.at,
                   "zip must be a list of tables, as in [{ learning_rate = [0.1, 0.01], batch = "
                   "[128, 64] }], is " +
                       description(member.value));
    return dimensions;
  }
  for (const Item& group : *list) dimensions.push_back(read_zip(group, declared, names, problems));
  return dimensions;
}

std::vector<Dimension> read_dimensions(const Item::Table& table, const Declared& declared,
                                       Problems& problems) {
  std::vector<Dimension> dimensions;
  Names names;
  for (const Member& member : table) {
    if (member.name == "zip") {
      for (Dimension& zip : read_zips(member, declared, names, problems))
        dimensions.push_back(std::move(zip));
    } else {
      dimensions.push_back({read_axis(member, "[matrix]", declared, names, problems)});
      drop_repeated_values(dimensions.back().front(), problems);
    }
  }
  std::erase_if(dimensions,
                [](const Dimension& each) { return each.empty() || each.front().values.empty(); });
  return dimensions;
}

// Model first, strategy second, seed last.
int rank(const Dimension& dimension) {
  int lowest = 3;
  for (const Axis& axis : dimension) {
    const int of_axis = axis.name == "model" ? 0 : axis.name == "strategy" ? 1 : axis.name == "seed" ? 3 : 2;
    lowest = std::min(lowest, of_axis);
  }
  return lowest;
}

}  // namespace

const Axis* Matrix::axis(const std::string& name) const {
  for (const Dimension& dimension : dimensions)
    for (const Axis& each : dimension)
      if (each.name == name) return &each;
  return nullptr;
}

void sort_dimensions(Matrix& matrix) {
  std::stable_sort(matrix.dimensions.begin(), matrix.dimensions.end(),
                   [](const Dimension& a, const Dimension& b) { return rank(a) < rank(b); });
}

void check_hyperparameters(const Matrix& matrix, const Declared& declared, Problems& problems) {
  const Axis* models_axis = matrix.axis("model");
  if (models_axis == nullptr) return;
  for (const Dimension& dimension : matrix.dimensions)
    for (const Axis& axis : dimension)
      for (const Setting& model : models_axis->values) {
        const auto& name = std::get<std::string>(model.value);
        if (run_parameter(axis.name) != nullptr ||
            hyperparameter(*model_or_null(name, declared), axis.name) != nullptr)
          continue;
        problems.error(axis.at, axis.name + " is not a key of model " + in_quotes(name) +
                                    ", which is in the matrix; set it in the tables [model.*] that have it");
      }
}

Matrix read_matrix(const Member& section, const Declared& declared, Problems& problems) {
  Matrix matrix{.given = true, .broken = false, .at = section.value.at, .dimensions = {}};
  const std::size_t errors = problems.errors();
  if (const Item::Table* table = section_table(section, "[matrix]", problems)) {
    matrix.dimensions = read_dimensions(*table, declared, problems);
    sort_dimensions(matrix);
  }
  matrix.broken = problems.errors() > errors;
  return matrix;
}

}  // namespace trainyard::experiments
