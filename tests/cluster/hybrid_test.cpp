// The published hybrid study, with few samples: four ranks on this host, under Slurm and under mpirun.
#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "db/database/database.h"
#include "db/queries/queries.h"
#include "tests/cluster/real_slurm.h"
#include "tests/support/contains.h"
#include "tests/support/result_rows.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/shipped_file.h"

using namespace trainyard;
using namespace trainyard::cluster;
using e2e::Scratch;

namespace {

std::vector<std::string> hybrid_rows(const Scratch& scratch, const std::string& data,
                                     const std::string& machine) {
  scratch.write("hybrid.toml", e2e::short_hybrid(scratch) + "[machine]\n" + machine);
  const auto run = scratch.at({"run", "hybrid.toml", "--data", data});
  REQUIRE_MESSAGE(run.code == 0, (run.out + run.err));
  const auto compared = scratch.at({"compare"});
  CHECK_MESSAGE(!contains(compared.out, "BROKEN"), compared.out);
  CHECK(contains(compared.out, "hybrid"));
  return tests::result_rows(scratch.path() / "yard");
}

// Each arm passed its parity check, and the page has the published numbers.
void check_report(const Scratch& scratch) {
  const auto database = db::Database::open_read_only(scratch.path() / "yard/results.db");
  CHECK(db::select(database, "SELECT DISTINCT run_key FROM probe").rows.size() == 3);
  const std::string page = tests::read_text(scratch.path() / "yard/reports/brac hybrid/index.html");
  CHECK(contains(
      page,
      "<dt>Published study</dt><dd>brac-hybrid. Its hardware: hybrid on four CPU nodes. Training time: "
      "IMPROVES for MobileNetV2 (hybrid). Accuracy: IMPROVES for MobileNetV2 (hybrid)."));
}

// The ranks of two nodes do not share memory, so gradients are exchanged in another way and rounded differently.
void check_close(const std::vector<std::string>& found, const std::vector<std::string>& expected) {
  REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    CAPTURE(found[i]);
    CAPTURE(expected[i]);
    const auto row = nlohmann::json::parse(found[i]), same = nlohmann::json::parse(expected[i]);
    REQUIRE(row.size() == same.size());
    for (std::size_t column = 0; column < row.size(); ++column) {
      if (row[column].is_number_float())
        CHECK(row[column].get<double>() == doctest::Approx(same[column].get<double>()).epsilon(1e-3));
      else
        CHECK(row[column] == same[column]);
    }
  }
}

}  // namespace

TEST_CASE(
    "the hybrid study with four tasks has the rows of this host under mpirun, and under Slurm to 0.1 %") {
  const std::string data = e2e::real_data();
  if (data.empty()) {
    MESSAGE("skipped: no real data; set TRAINYARD_DATA");
    return;
  }
  const Scratch here;
  const auto expected = hybrid_rows(here, data, "exclusive = \"devices\"\n");
  check_report(here);
  if (installed({"mpirun"})) {
    const Scratch scratch;
    scratch.write("hosts", "localhost slots=4\n");
    CHECK(hybrid_rows(scratch, data,
                      "launcher = \"mpi\"\nhosts = \"hosts\"\noptions = [\"--allow-run-as-root\", "
                      "\"--oversubscribe\"]\n") == expected);
  }
  if (slurm() == nullptr) return;
  const Scratch scratch;
  check_close(hybrid_rows(scratch, data, "launcher = \"slurm\"\nnodes = 2\nexclusive = \"devices\"\n"),
              expected);
}
