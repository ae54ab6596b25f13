// The timeline of one step, from the ranks of a pipeline to the page.
#include <filesystem>

#include <doctest/doctest.h>

#include "tests/support/contains.h"
#include "tests/support/program.h"

using namespace trainyard;
using namespace trainyard::e2e;

TEST_CASE("each rank of a pipeline records one step, and the report draws it") {
  const Scratch scratch;
  scratch.write("stages.toml",
                "name = \"stages\"\n[matrix]\nmodel = [\"mlp\"]\nstrategy = [\"single\", \"pipeline\"]\n"
                "seed = [0, 1]\n[defaults]\ndataset = \"synthetic-digits\"\nepochs = 2\ntrain_samples = 640\n"
                "batch = 128\n[strategy.pipeline]\nstages = 2\nmicro_batches = 3\n");
  REQUIRE(scratch.at({"run", "stages.toml"}).code == 0);
  const auto rows = [&](const std::string& query) {
    return scratch.at({"sql", query, "--format", "csv"}).out;
  };
  CHECK(rows("SELECT DISTINCT strategy, stage, epoch, step, (SELECT COUNT(*) FROM step_event o WHERE "
             "o.run_key = "
             "s.run_key AND o.rank = s.rank AND o.part = 'forward') AS forwards "
             "FROM step_event s JOIN run_summary USING (run_key) ORDER BY stage") ==
        "strategy,stage,epoch,step,forwards\npipeline,0,2,4,3\npipeline,1,2,4,3\n");
  CHECK(rows("SELECT COUNT(*) AS n FROM step_event a JOIN step_event b USING (run_key, part, micro_batch) "
             "WHERE part = 'forward' AND a.stage = 0 AND b.stage = 1 AND a.end_seconds <= b.begin_seconds") ==
        "n\n6\n");
  const auto report = scratch.path() / "yard/reports/stages";
  const std::string page = tests::read_text(report / "index.html");
  CHECK(contains(page, "id=\"figure-mlp-timeline\""));
  CHECK(contains(page, "Idle, waiting for a neighbouring stage: stage 0 "));
  CHECK(contains(page, "pipeline, stage 1: Backward of micro-batch 2, "));
  checked_output(scratch.at({"report", "stages", "--format", "svg,csv"}), 0, "");
  for (const char* file : {"mlp-timeline.svg", "mlp-timeline.csv"})
    CHECK(std::filesystem::exists(report / "figures" / file));
}
