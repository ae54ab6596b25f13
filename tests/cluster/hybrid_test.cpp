// The published hybrid study, with few samples: four ranks under Slurm and under mpirun.
#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "tests/cluster/real_slurm.h"
#include "tests/support/contains.h"
#include "tests/support/result_rows.h"
#include "tests/support/scratch_folder.h"

using namespace trainyard;
using namespace trainyard::cluster;
using e2e::Scratch;

namespace {

std::string with(std::string text, const std::string& from, const std::string& to) {
  const auto place = text.find(from);
  REQUIRE_MESSAGE(place != std::string::npos, from);
  return text.replace(place, from.size(), to);
}

std::vector<std::string> hybrid_rows(const Scratch& scratch, const std::string& data,
                                     const std::string& machine) {
  const std::string folder = TRAINYARD_SOURCE "/experiments/";
  scratch.write("brac-hybrid-results.toml", tests::read_text(folder + "brac-hybrid-results.toml"));
  std::string file = with(tests::read_text(folder + "brac-hybrid.toml"), "width   = 1.0", "width = 0.1");
  file = with(with(file, "epochs                 = 10", "train_samples = 64\nepochs = 1"), "count = 3",
              "count = 1");
  scratch.write("hybrid.toml", with(file, "= 128 ", "= 32 ") + "[machine]\n" + machine);
  const auto run = scratch.at({"run", "hybrid.toml", "--data", data});
  REQUIRE_MESSAGE(run.code == 0, (run.out + run.err));
  const auto compared = scratch.at({"compare"});
  CHECK_MESSAGE(!contains(compared.out, "BROKEN"), compared.out);
  CHECK(contains(compared.out, "hybrid"));
  return tests::result_rows(scratch.path() / "yard");
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
    "the hybrid study of MobileNetV2 has the same rows with four tasks of Slurm and of mpirun as on this "
    "host") {
  const std::string data = e2e::real_data();
  if (data.empty()) {
    MESSAGE("skipped: no real data; set TRAINYARD_DATA");
    return;
  }
  const Scratch here;
  const auto expected = hybrid_rows(here, data, "exclusive = \"devices\"\n");
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
