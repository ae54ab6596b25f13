// Which runs a report is about: of one experiment or several, all of them or a part.
#pragma once

#include <string>
#include <vector>

#include "reports/results/report_data.h"

namespace trainyard::reports {

struct Selection {
  std::vector<std::string> experiments;  // at least one
  std::string since;                     // UTC, "2026-11-20" or "2026-11-20T09:30"; empty: all
  std::vector<std::string> where;  // "model=mlp": names must all hold, values of one name are alternatives
};

// What the database has of the selection. UserError: no such experiment, none of its runs has finished an
// epoch, an unknown name or no run left.
ReportData gather(const db::Database& database, const Selection& selection);

// Several experiments as one: a run that is in several is taken once. What tells runs of one model and
// strategy apart that no experiment varies by itself becomes a varied value, so that they stay in cells of
// their own.
ReportData merged(std::vector<ReportData> parts);

// Leaves out the runs that are not wanted, with all that hangs on them. UserError as above.
void keep_selected(ReportData& data, const Selection& selection);

}  // namespace trainyard::reports
