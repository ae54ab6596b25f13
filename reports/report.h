// A report from the database alone: one self-contained HTML page and its figures as SVG and PNG.
#pragma once

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "db/database.h"

namespace trainyard::reports {

// Formats: "html", "svg", "png". Files: index.html, figures/<model>-<metric>.{svg,png}. Returns what was
// written, the page first. UserError: no such experiment, or none of its runs has finished an epoch.
std::vector<std::filesystem::path> write_report(const db::Database& database, const std::string& experiment,
                                                const std::filesystem::path& folder,
                                                const std::set<std::string>& formats = {"html", "svg",
                                                                                        "png"});

// One line for each finished run of the latest plan that is not as the experiment's file expects.
std::vector<std::string> missed_expectations(const db::Database& database, const std::string& experiment);

// The improves / no change / deteriorates table for a terminal, in the published shape, with a line for each
// warning.
std::string verdict_table_text(const db::Database& database, const std::string& experiment);

}  // namespace trainyard::reports
