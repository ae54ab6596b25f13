// How `probe` records are stored, and what reports and plans read of them.
#include <doctest/doctest.h>

#include "db/ingest/ingest.h"
#include "db/queries/evidence.h"
#include "tests/db/support/yard.h"

using namespace trainyard;
using namespace trainyard::db;
using namespace trainyard::db::testing;
using nlohmann::json;

namespace {

// A probe of replica 0 if `reference`, the loss of its virtual mesh, is given. The layers are not in
// alphabetical order.
json probe_body(int step, double loss, const json& reference = nullptr) {
  json body{{"step", step},
            {"loss", loss},
            {"gradient_norm", 1.5},
            {"layers",
             {{{"path", "2.weight"}, {"gradient_norm", 1.25}, {"parameter_hash", "aa"}},
              {{"path", "10.weight"}, {"gradient_norm", 0.5}, {"parameter_hash", "bb"}}}}};
  if (reference.is_null()) return body;
  body["reference_loss"] = reference;
  body["layers"][0]["difference"] = 0.0;
  body["layers"][1]["difference"] = 0.25;
  return body;
}

struct Probed : Yard {
  experiments::Run run = make_run("mlp", 2, 0);
  experiments::Launch launch = make_launch(run);
  RecordLog first{run, 1, 0}, second{run, 1, 1};

  Probed() {
    plan({run});
    ingest.run_file(experiments::to_json(launch));
  }
  void cause(const std::string& outcome) {
    RecordLog orchestrator(run, 1, std::nullopt);
    ingest.record(orchestrator.next("cause", {{"outcome", outcome}}));
  }
};

}  // namespace

TEST_CASE("a probe is stored as one row per step and one row per parameter, in the order of the layers") {
  Probed yard;
  yard.ingest.record(yard.first.next("probe", probe_body(1, 2.25, 2.5)));
  CHECK(select(yard.database,
               "SELECT run_key, attempt, rank, step, loss, reference_loss, gradient_norm, extra FROM probe")
            .rows == std::vector<std::vector<json>>{{key(yard.run), 1, 0, 1, 2.25, 2.5, 1.5, nullptr}});
  CHECK(select(yard.database,
               "SELECT position, path, gradient_norm, difference, parameter_hash FROM probe_layer")
            .rows ==
        std::vector<std::vector<json>>{{0, "2.weight", 1.25, 0.0, "aa"}, {1, "10.weight", 0.5, 0.25, "bb"}});
  CHECK(rows_of(yard.database, "SELECT * FROM extra_record").empty());
}

TEST_CASE("probes are returned by step and rank, as they were recorded") {
  Probed yard;
  json with_more = probe_body(1, 2.25, 2.5);
  with_more["seconds"] = 0.5;
  with_more["layers"][1]["unit"] = "none";
  yard.ingest.record(yard.second.next("probe", probe_body(1, 2.25)));
  yard.ingest.record(yard.first.next("probe", with_more));
  yard.ingest.record(yard.first.next("probe", probe_body(2, 2, 2)));
  CHECK(rows_of(yard.database, "SELECT extra FROM probe WHERE extra IS NOT NULL").size() == 1);
  const std::vector<Probe> found = probes(yard.database, "sweep");
  REQUIRE(found.size() == 3);
  CHECK(found[0].run_key == key(yard.run));
  CHECK(found[0].rank == 0);
  CHECK(found[0].body == probe_body(1, 2.25, 2.5));
  CHECK(found[1].rank == 1);
  CHECK(found[1].body.at("reference_loss").is_null());
  CHECK(found[1].body.at("layers").at(1).at("path") == "10.weight");
  CHECK(found[1].body.at("layers").at(1).at("difference").is_null());
  CHECK(found[2].rank == 0);
  CHECK(found[2].body == probe_body(2, 2, 2));
  CHECK(probes(yard.database, "another").empty());
}

TEST_CASE("an invalid probe is stored whole with the reason") {
  Probed yard;
  for (const json& wrong : {json{{"loss", 1}}, json{{"step", 1}, {"layers", {{"2.weight", 0.5}}}},
                            json{{"step", 1}, {"layers", {{{"gradient_norm", 0.5}}}}}})
    CHECK(yard.ingest.record(yard.first.next("probe", wrong)) == Accepted::taken);
  CHECK(rows_of(yard.database, "SELECT * FROM probe").empty());
  CHECK(rows_of(yard.database, "SELECT * FROM extra_record WHERE problem IS NOT NULL").size() == 3);
}

TEST_CASE("a run is probed if an attempt that did not fail has the probe of every rank") {
  const std::set<std::pair<std::string, std::string>> here{
      {key(make_run("mlp", 2, 0)),
       experiments::circumstances_hash(make_launch(make_run("mlp", 2, 0)).circumstances)}};
  Probed yard;
  yard.ingest.record(yard.first.next("probe", probe_body(1, 2.25, 2.5)));
  CHECK(probed_runs(yard.database).empty());
  CHECK(probes(yard.database, "sweep").empty());
  yard.ingest.record(yard.second.next("probe", probe_body(1, 2.25)));
  CHECK(probed_runs(yard.database) == here);
  yard.cause("interrupted");
  CHECK(probed_runs(yard.database) == here);

  Probed failed;
  for (RecordLog* log : {&failed.first, &failed.second})
    failed.ingest.record(log->next("probe", probe_body(1, 2.25)));
  failed.cause("failed");
  CHECK(probed_runs(failed.database).empty());
  CHECK(probes(failed.database, "sweep").empty());
}

TEST_CASE("a run that resumes after an interruption keeps its earlier probes") {
  Probed yard;
  yard.ingest.record(yard.first.next("probe", probe_body(1, 2.25, 2.5)));
  yard.ingest.record(yard.second.next("probe", probe_body(1, 2.25)));
  yard.cause("interrupted");
  yard.launch.attempt = 2;
  yard.ingest.run_file(experiments::to_json(yard.launch));
  RecordLog first{yard.run, 2, 0}, second{yard.run, 2, 1};
  yard.ingest.record(first.next("probe", probe_body(1, 4, 4)));  // the other rank has no probe
  for (RecordLog* log : {&first, &second}) {
    record_epochs(yard.ingest, *log, 3);
    yard.ingest.record(log->next("end", end_body("finished", 6)));
  }
  const std::vector<Probe> found = probes(yard.database, "sweep");
  REQUIRE(found.size() == 2);
  CHECK(found[0].body.at("loss") == 2.25);
}
