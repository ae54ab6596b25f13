#include "models/datasets/row_data.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/sha256.h"
#include "base/text.h"
#include "models/readers/csv_file.h"

namespace trainyard::models {

namespace {

namespace fs = std::filesystem;

// The columns of a table that a run reads.
struct Table {
  fs::path file = {};
  std::vector<std::string> inputs = {};   // names of the input columns
  std::vector<double> values = {};        // [row, input]
  std::vector<double> numbers = {};       // [row]: targets that are numbers, or none
  std::vector<std::string> classes = {};  // [row]: targets that are classes, or none
  std::vector<std::int64_t> lines = {};   // [row]
  std::int64_t size() const { return std::ssize(lines); }
};

Table selected(const Table& table, const std::vector<std::int64_t>& indices) {
  Table some{.file = table.file, .inputs = table.inputs};
  const auto columns = std::ssize(table.inputs);
  for (const std::int64_t index : indices) {
    const auto at = static_cast<std::size_t>(index);
    const auto begin = table.values.begin() + index * columns;
    some.values.insert(some.values.end(), begin, begin + columns);
    if (!table.numbers.empty()) some.numbers.push_back(table.numbers[at]);
    if (!table.classes.empty()) some.classes.push_back(table.classes[at]);
    some.lines.push_back(table.lines[at]);
  }
  return some;
}

std::vector<std::string> input_names(const CsvTable& table, const DataChoice& choice) {
  std::vector<std::string> names;
  for (std::string_view rest = choice.input_columns; !rest.empty();) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    names.emplace_back(trimmed(rest.substr(0, comma)));
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  if (names.empty()) {
    names = table.names;
    std::erase(names, choice.target_column);
  }
  if (names.empty())
    throw csv_error(table.file, 1, "the table has only the column of the target",
                    "add columns of inputs, and separate cells by commas");
  for (auto name = names.begin(); name != names.end(); ++name)
    if (*name == choice.target_column || std::find(names.begin(), name, *name) != name)
      throw UserError(fmt::format("input_columns names {} \"{}\"{}",
                                  *name == choice.target_column ? "the target" : "the column", *name,
                                  *name == choice.target_column ? "" : " twice"),
                      "remove it from input_columns");
  return names;
}

double number_in(const CsvTable& table, std::size_t row, std::size_t column, const char* advice) {
  const std::string_view text = cell_text(table, row, column);
  const std::string_view digits = text.substr(text.front() == '+' ? 1 : 0);
  double number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  const bool whole = end == digits.data() + digits.size() && !digits.empty();
  if (whole && error == std::errc() && std::isfinite(number)) return number;
  throw csv_error(table.file, table.lines[row],
                  fmt::format("column \"{}\" has \"{}\", which is not a {}", table.names[column],
                              shortened(text, 40), whole ? "finite number" : "number"),
                  whole ? "correct the value, or remove the row" : advice);
}

Table table_of(const CsvTable& csv, const std::vector<std::string>& inputs, const DataChoice& choice) {
  Table table{.file = csv.file, .inputs = inputs, .lines = csv.lines};
  std::vector<std::size_t> columns;
  columns.reserve(inputs.size());
  for (const std::string& name : inputs) columns.push_back(column_of(csv, name));
  const std::size_t target = column_of(csv, choice.target_column);
  for (std::size_t row = 0; row < csv.rows(); ++row) {
    for (const std::size_t column : columns)
      table.values.push_back(
          number_in(csv, row, column,
                    "replace texts by numbers, for example one column of 0 and 1 per word, "
                    "or list the other columns in input_columns"));
    if (choice.target_kind == "class")
      table.classes.emplace_back(cell_text(csv, row, target));
    else
      table.numbers.push_back(
          number_in(csv, row, target, "write numbers, or set target_kind = \"class\" to predict classes"));
  }
  return table;
}

struct ReadTables {
  Parts<Table> parts;
  std::string fingerprint;
};

ReadTables read_tables(const fs::path& place, const DataChoice& choice) {
  const bool whole = fs::exists(place / "data.csv"), parted = fs::exists(place / "train.csv");
  if (whole && parted)
    throw UserError(fmt::format("{} has data.csv and train.csv", place.string()),
                    "keep data.csv to cut it by data_split, or train.csv with its parts");
  ReadTables found;
  Sha256 hash;
  const CsvTable train = read_csv(parted  ? place / "train.csv"
                                  : whole ? place / "data.csv"
                                          : place,
                                  "train", hash);
  const std::vector<std::string> inputs = input_names(train, choice);
  found.parts.train = table_of(train, inputs, choice);
  for (auto& [part, name] :
       {std::pair(&found.parts.validation, "validation"), std::pair(&found.parts.test, "test")})
    if (const fs::path file = place / (name + std::string(".csv")); parted && fs::exists(file))
      *part = table_of(read_csv(file, name, hash), inputs, choice);
  found.fingerprint = hash.hex();
  return found;
}

// A value becomes (value − mean) / deviation.
struct Scale {
  double mean = 0;
  double deviation = 1;  // of the population; 1 if all values are equal
};

// The scale of column `first` of an array [row, column] with `step` columns.
Scale scale_of(const std::vector<double>& values, std::size_t first, std::size_t step,
               const std::string& name, const fs::path& file) {
  const std::size_t rows = values.size() / step;
  double sum = 0, squares = 0, least = values[first], most = least;
  for (std::size_t i = first; i < values.size(); i += step) {
    sum += values[i];
    least = std::min(least, values[i]);
    most = std::max(most, values[i]);
  }
  if (least == most) return {least, 1};
  const double mean = sum / static_cast<double>(rows);
  for (std::size_t i = first; i < values.size(); i += step)
    squares += (values[i] - mean) * (values[i] - mean);
  const Scale scale{mean, std::sqrt(squares / static_cast<double>(rows))};
  if (!std::isfinite(scale.deviation) || scale.deviation < 1e-300)
    throw UserError(fmt::format("{}: the mean or the standard deviation of column \"{}\" is not a float64",
                                file.string(), name),
                    "write the column in another unit");
  return scale;
}

std::vector<float> standardised(const std::vector<double>& values, const std::vector<Scale>& scales) {
  std::vector<float> result;
  result.reserve(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const Scale& scale = scales[i % scales.size()];
    result.push_back(static_cast<float>((values[i] - scale.mean) / scale.deviation));
  }
  return result;
}

std::vector<std::string> classes_in(const Table& train, const DataChoice& choice) {
  std::vector<std::string> classes = train.classes;
  std::ranges::sort(classes);
  classes.erase(std::unique(classes.begin(), classes.end()), classes.end());
  if (choice.target_kind == "class" && classes.size() < 2)
    throw UserError(fmt::format("{}: column \"{}\" has only one class in the training part, \"{}\"",
                                train.file.string(), choice.target_column, classes.front()),
                    "add rows of another class");
  return classes;
}

std::vector<std::int32_t> labels_of(const Table& table, const std::vector<std::string>& classes,
                                    const DataChoice& choice) {
  std::vector<std::int32_t> labels;
  labels.reserve(table.classes.size());
  for (std::size_t row = 0; row < table.classes.size(); ++row) {
    const auto found = std::ranges::lower_bound(classes, table.classes[row]);
    if (found == classes.end() || *found != table.classes[row])
      throw csv_error(table.file, table.lines[row],
                      fmt::format("column \"{}\" has the class \"{}\", which the training part lacks",
                                  choice.target_column, shortened(table.classes[row], 40)),
                      "add rows of this class to the training part, or remove the row");
    labels.push_back(static_cast<std::int32_t>(found - classes.begin()));
  }
  return labels;
}

struct FoundRows {
  Splits parts = {};
  std::vector<std::string> classes = {};  // in the order of the labels; none if targets are numbers
  PartSizes sizes;                        // before the split
  std::string fingerprint;
};

FoundRows rows_in(const fs::path& place, const DataChoice& choice) {
  ReadTables found = read_tables(place, choice);
  FoundRows result{.sizes = sizes_of(found.parts), .fingerprint = std::move(found.fingerprint)};
  Parts<Table> parts = divided(choice, std::move(found.parts));
  const std::size_t columns = parts.train.inputs.size();
  std::vector<Scale> inputs, target;
  for (std::size_t i = 0; i < columns; ++i)
    inputs.push_back(scale_of(parts.train.values, i, columns, parts.train.inputs[i], parts.train.file));
  if (!parts.train.numbers.empty())
    target.push_back(scale_of(parts.train.numbers, 0, 1, choice.target_column, parts.train.file));
  result.classes = classes_in(parts.train, choice);
  const auto rows = [&](const Table& table) -> Samples {
    return Rows{.columns = static_cast<std::int64_t>(columns),
                .values = standardised(table.values, inputs),
                .labels = labels_of(table, result.classes, choice),
                .numbers = standardised(table.numbers, target),
                .deviation = target.empty() ? 0 : target.front().deviation};
  };
  result.parts = parts.each(rows);
  return result;
}

}  // namespace

bool holds_table(const fs::path& place) {
  std::error_code ignored;
  if (fs::is_directory(place, ignored))
    return fs::exists(place / "data.csv", ignored) || fs::exists(place / "train.csv", ignored);
  return place.extension() == ".csv" && fs::exists(place, ignored);
}

DataFacts row_facts(const Dataset& source, const fs::path& place, const DataChoice& choice) {
  const FoundRows found = rows_in(place, choice);
  InputShape input = input_shape(source);
  input.image = {.channels = std::get<Rows>(found.parts.train).columns, .height = 1, .width = 1};
  input.classes = std::max<std::int64_t>(1, std::ssize(found.classes));
  return {.fingerprint = found.fingerprint, .input = input, .sizes = found.sizes};
}

std::vector<std::string> row_class_names(const DataChoice& choice) {
  return choice.target_kind == "class" ? rows_in(choice.folder, choice).classes : std::vector<std::string>{};
}

Splits read_rows(const DataChoice& choice) {
  FoundRows found = rows_in(choice.folder, choice);
  check_fingerprint(choice, found.fingerprint);
  return std::move(found.parts);
}

}  // namespace trainyard::models
