// Export of whole views, for `trainyard export`, and queries of users. Only one row is in memory at a time.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "db/database/database.h"

namespace trainyard::db {

struct ExportedView {
  std::string name;   // "epochs"
  std::string view;   // "epoch_average", see db/README.md
  std::string about;  // one line
  std::string order;  // columns
};
std::span<const ExportedView> exported_views();

using ExportRow = std::vector<nlohmann::json>;  // null, integer, number or text
using OnColumns = std::function<void(const std::vector<std::string>&)>;
using OnRow = std::function<bool(const ExportRow&)>;  // false: no more rows are wanted

// Call `columns` once, then `row` for each row of `experiment` until it returns false, in a fixed order.
void export_rows(const Database& database, const ExportedView& view, const std::string& experiment,
                 const OnColumns& columns, const OnRow& row);

// Run the statement of a user, with the same calls.
// UserError if the statement is wrong, writes, or makes a text of more than 64 MiB. It can use two aggregates that SQLite
// lacks: `stddev` with n - 1, exactly 0 for equal values, and `median`. Both leave NULL out and refuse other texts.
void select_rows(const Database& database, const std::string& sql, const OnColumns& columns,
                 const OnRow& row);

}  // namespace trainyard::db
