// A table as neutral data: numbers stay numbers until a renderer writes them. Filled by figures and verdicts,
// written by the page and by `table_text`.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace trainyard::reports {

using TableValue = std::variant<std::string, std::int64_t, double>;  // NaN: no value

// A row of one text in a table of several columns heads the rows below it.
struct Table {
  std::vector<std::string> columns;
  std::vector<std::vector<TableValue>> rows;
};

}  // namespace trainyard::reports
