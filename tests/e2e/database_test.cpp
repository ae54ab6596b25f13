// `trainyard db`: a yard's database is copied and checked beside other backups and with read access only.
#include <fstream>
#include <memory>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "experiments/protocol/seal.h"
#include "tests/support/contains.h"
#include "tests/support/program.h"
#include "tests/support/shell_arm.h"
#include "tests/support/without_rights.h"

using namespace trainyard;
using namespace trainyard::e2e;
namespace fs = std::filesystem;

namespace {

// A yard with two finished runs of one experiment.
struct TwoRuns : FinishedArms {
  TwoRuns() : FinishedArms("epoch 1\nfinish", "{ count = 2 }") {}
};

}  // namespace

TEST_CASE(
    "one of several backups to the same file is complete, the others are refused, and no file is left over") {
  const TwoRuns scratch;
  const fs::path copies = scratch.path() / "copies";
  const auto runs_of = [&](const char* yard) { return scratch.at({"export", "runs", "--yard", yard}).out; };
  const std::string runs = runs_of("yard");
  REQUIRE(contains(runs, "finished"));
  for (int round = 0; round < 5; ++round) {
    fs::create_directory(copies);
    std::vector<std::unique_ptr<Trainyard>> backups;
    for (int i = 0; i < 6; ++i) {  // each has a folder for its output
      fs::create_directories(scratch.path() / std::to_string(i));
      backups.push_back(std::make_unique<Trainyard>(
          scratch.path() / std::to_string(i),
          std::vector<std::string>{"db", "backup", "../copies/results.db", "--yard", "../yard"}));
    }
    int copied = 0;
    for (const auto& backup : backups) {
      const Output output = backup->wait();
      copied += output.code == 0 ? 1 : 0;
      const bool refused =
          contains(output.err, "results.db: is being written by another `trainyard db backup`") ||
          contains(output.err, "results.db: already exists; name another file");
      CHECK_MESSAGE((output.code == 0 || (output.code == 2 && refused)), output.err);
    }
    CHECK(copied == 1);
    CHECK(runs_of("copies") == runs);
    CHECK_FALSE(fs::exists(copies / "results.db.unfinished"));
    fs::remove_all(copies);
  }
}

TEST_CASE("a journal entry with a value of the wrong type is a damaged line, and every verb still works") {
  const TwoRuns scratch;
  const fs::path journal = scratch.path() / "yard/journal.jsonl";
  auto entry = nlohmann::json::parse(std::ifstream(journal));
  entry.erase("crc");
  const auto write_entry = [&] { std::ofstream(journal) << experiments::sealed(entry.dump()) << '\n'; };
  const auto varied = entry.at("varied");
  for (const char* wrong : {"[7]", R"([{"name": "seed"}])"}) {
    entry["varied"] = nlohmann::json::parse(wrong);
    write_entry();
    checked_output(scratch.at({"db", "check"}), 1, "journal.jsonl:1: member varied of a journal entry: ");
  }
  const auto rebuilt =
      checked_error(scratch.at({"db", "rebuild"}), 0, "journal.jsonl:1: member varied of a journal entry: ");
  CHECK(contains(rebuilt.out, "left out: 1 damaged line"));
  CHECK_MESSAGE(contains(rebuilt.err, "journal.jsonl has 0 of 1 line. A rebuild keeps the rows"),
                rebuilt.err);
  CHECK(scratch.at({"report"}).code == 0);
  entry["varied"] = varied;
  write_entry();
  CHECK(scratch.at({"db", "rebuild"}).code == 0);
  CHECK(scratch.at({"report"}).code == 0);
}

TEST_CASE("a user with read access can check a yard, and errors name what is missing") {
  const TwoRuns scratch;
  const fs::path yard = scratch.path() / "yard", output = scratch.path() / "output";
  const fs::path program = scratch.path() / "trainyard";  // the build folder may not be readable for others
  fs::copy_file(TRAINYARD_PROGRAM, program);
  fs::create_directory(output);
  fs::permissions(output, fs::perms::all);
  const auto let = [](const fs::path& place, int rights) { fs::permissions(place, fs::perms(rights)); };
  const auto check = [&] {
    const WithoutRights nobody;
    return run_trainyard(output, {"db", "check", "--yard", "../yard"}, {}, program);
  };
  const auto run = fs::directory_iterator(yard / "runs")->path();
  for (const fs::path& place : {scratch.path(), yard / "runs", run}) let(place, 0755);
  let(yard / "journal.jsonl", 0444);
  let(yard / "yard.lock", 0444);
  let(yard, 0555);
  checked_output(check(), 0, "intact, and equal to the files");

  let(run, 0000);
  const auto closed = check();
  let(run, 0755);
  CHECK(closed.code == 2);
  CHECK_MESSAGE(contains(closed.err, run.filename().string() +
                                         ": cannot be read: Permission denied; check its permissions"),
                closed.err);

  let(yard / "journal.jsonl", 0644);
  std::ofstream(yard / "journal.jsonl", std::ios::app) << "garbage\n";
  const auto damaged = checked_output(check(), 1, "journal.jsonl:2: not JSON at byte 1\n");
  CHECK(contains(damaged.out, "you have no write access to this yard"));

  let(yard, 0755);
}
