// The table of what ranks send and hold.
#include <doctest/doctest.h>

#include "reports/analysis/analysis.h"
#include "reports/content/paper_tables.h"
#include "reports/document/report_json.h"
#include "tests/reports/support/made_results.h"

namespace trainyard::reports {

namespace {

void add(ReportData& data, const std::string& strategy, bool server, const std::string& what,
         const std::string& name, double amount) {
  for (const db::RunSummary& run : data.runs)
    if (run.strategy == strategy) data.rank_costs.push_back({run.run_key, server, what, name, amount});
}

}  // namespace

TEST_CASE("the table of ranks has bytes per step and at most, and the shares of stale updates") {
  ReportData data = invented({.models = {"mlp"}, .strategies = {"single", "tf"}, .seeds = 2});
  CHECK(rank_costs(make_report(data)).rows.empty());  // old runs have not recorded them

  for (db::RunSummary& run : data.runs)
    if (run.strategy == "tf") run.replicas = run.servers = 2;
  add(data, "single", false, "held_bytes", "parameters", 4e6);
  add(data, "tf", false, "sent_bytes", "servers", 2.5e6);
  add(data, "tf", true, "sent_bytes", "servers", 5e6);
  add(data, "tf", true, "staleness", "10", 1);
  add(data, "tf", true, "staleness", "2", 3);
  const Report report = make_report(data);
  const std::string table = csv_table(rank_costs(report));
  CHECK(table ==
        "Cell,Arm,Rank,to servers,parameters,Staleness\n"
        "MLP,single,the only one,,4,\n"
        "MLP,tf,replica,2.5,,\n"
        "MLP,tf,server,5,,\"2: 75 %, 10: 25 %\"\n");
  const Report read = report_from_json(report_json(report), "report.json");
  CHECK(csv_table(rank_costs(read)) == table);
}

}  // namespace trainyard::reports
