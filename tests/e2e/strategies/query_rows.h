// Rows of a query on the yard of a test.
#pragma once

#include <string>

#include "db/database/database.h"
#include "db/queries/queries.h"
#include "tests/support/scratch_folder.h"

namespace trainyard::e2e {

// One line of JSON per row.
inline std::string rows_of(const Scratch& scratch, const std::string& sql) {
  const auto database = db::Database::open_read_only(scratch.path() / "yard/results.db");
  std::string text;
  for (const auto& row : db::select(database, sql).rows) text += nlohmann::json(row).dump() + "\n";
  return text;
}

inline std::string losses_of(const Scratch& scratch, const std::string& strategy) {
  return rows_of(scratch, "SELECT epoch, train_loss, validation_loss FROM epoch_average WHERE strategy = '" +
                              strategy + "' ORDER BY epoch");
}

}  // namespace trainyard::e2e
