// Verdicts on invented results, for the tests of verdicts.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "reports/verdicts/verdict.h"
#include "tests/reports/support/made_results.h"

namespace trainyard::reports {

inline TestedVerdict verdict_on(const std::vector<CellVerdicts>& cells, const std::string& model,
                                const std::string& metric, const std::string& arm = "ddp") {
  for (const CellVerdicts& cell : cells) {
    if (cell.cell.model != model) continue;
    const TestedVerdict* verdict = cell.find(arm, metric);
    REQUIRE(verdict != nullptr);
    return *verdict;
  }
  FAIL("no cell " << model);
  throw std::out_of_range(model);
}

inline std::vector<CellVerdicts> judged(const ReportData& data) {
  return judge(data, data.plan.compare.front());
}

inline ReportData one_model(int seeds = 5) {
  return invented({.models = {"mlp"}, .seeds = seeds});
}

}  // namespace trainyard::reports
