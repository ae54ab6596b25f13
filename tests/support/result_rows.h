// Results that must be the same after any fault and under every launcher. Times and numbers of attempts are
// left out.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "db/database/database.h"
#include "db/queries/queries.h"

namespace trainyard::tests {

// The rows of a yard's views, one line of JSON per row.
inline std::vector<std::string> result_rows(const std::filesystem::path& yard) {
  static constexpr const char* views[] = {
      "SELECT run_key, experiment, model, strategy, seed, status, epochs_done, test_accuracy FROM "
      "run_summary "
      "ORDER BY 1, 2",
      "SELECT run_key, epoch, train_loss, train_accuracy, validation_loss, validation_accuracy FROM "
      "epoch_average ORDER BY 1, 2",
      "SELECT run_key, epoch, rank, train_loss FROM epoch_rank ORDER BY 1, 2, 3",
      "SELECT run_key, train_loss, validation_loss, test_loss, test_accuracy FROM final_metrics ORDER BY 1",
      "SELECT run_key, COUNT(*) AS finished_attempts FROM attempt_status WHERE status = 'finished' GROUP BY "
      "1 "
      "ORDER BY 1",
      "SELECT run_key, 'still running' FROM attempt_status WHERE status = 'running' ORDER BY 1"};
  const auto database = db::Database::open_read_only(yard / "results.db");
  std::vector<std::string> rows;
  for (const char* view : views)
    for (const auto& row : db::select(database, view).rows) rows.push_back(nlohmann::json(row).dump());
  return rows;
}

}  // namespace trainyard::tests
