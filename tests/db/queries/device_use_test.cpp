// Use of the devices per epoch: energy counts once per device, memory is the maximum over the ranks.
#include <cmath>

#include <doctest/doctest.h>

#include "tests/db/support/checked_yard.h"

using namespace trainyard;
using namespace trainyard::db;
using namespace trainyard::db::testing;
using nlohmann::json;

namespace {

struct Used {
  json joules;
  std::string device;
  json peak_bytes;
};

// Finishes `run` with `used[rank][epoch]`. Each epoch trains for one second.
void finish_with(Yard& yard, const experiments::Run& run, const std::vector<std::vector<Used>>& used) {
  yard.ingest.run_file(experiments::to_json(make_launch(run)));
  for (std::size_t rank = 0; rank < used.size(); ++rank) {
    RecordLog log(run, 1, static_cast<int>(rank));
    for (std::size_t e = 0; e < used[rank].size(); ++e) {
      json body = epoch_body(static_cast<std::int64_t>(e) + 1, 1, 0.5, {metric("train", "loss", 10, 10)});
      const Used& one = used[rank][e];
      if (!one.joules.is_null()) body["energy_joules"] = one.joules;
      if (!one.device.empty()) body["energy_device"] = one.device;
      if (!one.peak_bytes.is_null()) body["peak_device_bytes"] = one.peak_bytes;
      yard.ingest.record(log.next("epoch", body));
    }
    yard.ingest.record(log.next("end", end_body("finished", 6)));
  }
}

std::vector<double> joules_of_epochs(const Yard& yard) {
  std::vector<double> joules;
  for (const EpochRow& row : epoch_averages(yard.database, "sweep")) joules.push_back(row["energy_joules"]);
  return joules;
}

}  // namespace

TEST_CASE("the energy of an epoch is the sum over its devices, and that of a run the sum over its epochs") {
  CheckedYard yard;
  const auto run = make_run("mlp", 2, 0, 4);
  yard.plan({run});
  finish_with(yard, run,
              {{{900, "GPU-a", 7000}, {100.5, "GPU-a", 5000}, {104, "GPU-a", 5000}, {102, "GPU-a", 5000}},
               {{800, "GPU-b", 6000}, {200, "GPU-b", 9000}, {204, "GPU-b", 6000}, {202, "GPU-b", 6000}}});
  CHECK(joules_of_epochs(yard) == std::vector<double>{1700, 300.5, 308, 304});
  CHECK(yard.final()["epoch_energy_joules"] == 304);  // the median without the first epoch, which is warm-up
  CHECK(yard.final()["peak_device_bytes"] == 9000);
  CHECK(rows_of(yard.database, "SELECT energy_joules, peak_device_bytes FROM run_summary") ==
        std::vector<std::string>{"[2612.5,9000]"});
  CHECK(rows_of(yard.database, "SELECT epoch_energy_joules, peak_device_bytes FROM task_final_metrics") ==
        std::vector<std::string>{"[304.0,9000]"});
}

TEST_CASE("ranks that share a device read one counter: its largest value counts once") {
  CheckedYard yard;
  const auto run = make_run("mlp", 2, 0, 1);
  yard.plan({run});
  finish_with(yard, run, {{{100, "GPU-a", {}}}, {{101, "GPU-a", {}}}});
  CHECK(joules_of_epochs(yard) == std::vector<double>{101});
}

TEST_CASE("ranks that name no device count as one device per rank") {
  CheckedYard yard;
  const auto run = make_run("mlp", 2, 0, 1);
  yard.plan({run});
  finish_with(yard, run, {{{100, "", {}}}, {{101, "", {}}}});
  CHECK(joules_of_epochs(yard) == std::vector<double>{201});
}

TEST_CASE("if the energy of one device is unknown, the energy of the epoch and of the run is unknown too") {
  CheckedYard yard;
  const auto run = make_run("mlp", 2, 0, 2);
  yard.plan({run});
  finish_with(yard, run, {{{100, "GPU-a", {}}, {100, "GPU-a", {}}}, {{{}, "", {}}, {50, "GPU-b", {}}}});
  const auto joules = joules_of_epochs(yard);
  REQUIRE(joules.size() == 2);
  CHECK(std::isnan(joules[0]));
  CHECK(joules[1] == 150);
  CHECK(rows_of(yard.database, "SELECT energy_joules, peak_device_bytes FROM run_summary") ==
        std::vector<std::string>{"[null,null]"});
}
