// Records: appending to a spool.

#include <doctest/doctest.h>

#include "experiments/protocol/record.h"
#include "tests/support/file_size_limit.h"
#include "tests/support/scratch_folder.h"

using namespace trainyard;
using namespace trainyard::experiments;

TEST_CASE("records of a rank have all common members, in order, and no gaps") {
  const tests::ScratchFolder folder;
  const auto spool = folder / rank_records_name(3);
  CHECK(spool.filename() == "rank-3.records.jsonl");
  {
    RecordWriter writer(spool, "3f9a1c20b7de", 2, 3);
    writer.append("start", {{"world_size", 4}});
    writer.append("message", {{"level", "info"}, {"text", "line\nbreak"}});
    writer.append("end");
    writer.sync();
  }
  const auto lines = tests::read_lines(spool);
  REQUIRE(lines.size() == 3);
  double elapsed = 0;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const ParsedLine parsed = parse_line(lines[i]);
    REQUIRE_MESSAGE(parsed.record.has_value(), parsed.problem);
    CHECK(parsed.record->seq == static_cast<std::int64_t>(i));
    CHECK(parsed.record->rank == 3);
    CHECK(parsed.record->attempt == 2);
    CHECK(parsed.record->elapsed_seconds >= elapsed);
    elapsed = parsed.record->elapsed_seconds;
  }
  CHECK(lines[0].starts_with(
      R"({"v":1,"run":"3f9a1c20b7de","attempt":2,"rank":3,"seq":0,"type":"start","time":")"));
  CHECK(parse_line(lines[1]).record->body.at("text") == "line\nbreak");
}

TEST_CASE("numbers continue after the larger of the file and the database") {
  const tests::ScratchFolder folder;
  const auto spool = folder / orchestrator_records_name;
  RecordWriter(spool, "a", 1, std::nullopt, 5).append("leased");  // the file has lost five records
  RecordWriter(spool, "a", 1, std::nullopt, 2).append("launched");
  const auto lines = tests::read_lines(spool);
  REQUIRE(lines.size() == 2);
  CHECK(parse_line(lines[0]).record->seq == 5);
  CHECK(parse_line(lines[1]).record->seq == 6);
}

TEST_CASE("numbers continue after a last line of any length") {
  const tests::ScratchFolder folder;
  for (std::size_t length = 65200; length < 65540; ++length) {  // around the size of a block
    const auto spool = folder / std::to_string(length);
    RecordWriter(spool, "a", 1, std::nullopt, 5).append("message", {{"text", std::string(length, 'x')}});
    RecordWriter(spool, "a", 1, std::nullopt).append("launched");
    CAPTURE(length);
    CHECK(parse_line(tests::read_lines(spool).at(1)).record.value().seq == 6);
  }
}

TEST_CASE("the orchestrator's own records have no rank") {
  const tests::ScratchFolder folder;
  RecordWriter(folder / orchestrator_records_name, "a", 1, std::nullopt)
      .append("leased", {{"devices", {"cpu:0"}}});
  const ParsedLine parsed = parse_line(tests::read_lines(folder / orchestrator_records_name).at(0));
  REQUIRE(parsed.record.has_value());
  CHECK_FALSE(parsed.record->rank.has_value());
  CHECK_FALSE(parsed.record->body.contains("rank"));
}

TEST_CASE("a reopened spool continues after its last complete record, and a torn line is removed") {
  const tests::ScratchFolder folder;
  const auto spool = folder / "spool";
  RecordWriter(spool, "a", 1, 0).append("start");
  tests::write_text(spool, tests::read_text(spool) + R"({"v":1,"run":"a","attempt":1,"ra)");
  RecordWriter(spool, "a", 1, 0).append("end");
  const auto lines = tests::read_lines(spool);
  REQUIRE(lines.size() == 2);
  CHECK(parse_line(lines[0]).record->seq == 0);
  CHECK(parse_line(lines[1]).record->seq == 1);
}

TEST_CASE("two writers of one spool never tear each other's lines") {
  const tests::ScratchFolder folder;
  const auto spool = folder / "spool";
  RecordWriter first(spool, "a", 1, 0);
  RecordWriter second(spool, "b", 1, 1);
  for (int i = 0; i < 50; ++i) {
    first.append("message", {{"text", std::string(100, 'x')}});
    second.append("message", {{"text", std::string(3000, 'y')}});
  }
  const auto lines = tests::read_lines(spool);
  CHECK(lines.size() == 100);
  for (const std::string& line : lines) CHECK(parse_line(line).record.has_value());
}

TEST_CASE("a full disk is a system error that names the spool") {
  RecordWriter writer("/dev/full", "a", 1, 0);
  try {
    writer.append("start");
    FAIL("nothing was thrown");
  } catch (const std::system_error& error) {
    CHECK(error.code() == std::errc::no_space_on_device);
    CHECK(std::string(error.what()).find("/dev/full") != std::string::npos);
  }
}

TEST_CASE("a partial record on a full disk is removed again") {
  const tests::ScratchFolder folder;
  const auto spool = folder / "spool";
  RecordWriter writer(spool, "a", 1, 0);
  writer.append("start");
  const auto size = std::filesystem::file_size(spool);
  {
    const tests::FileSizeLimit limit(size + 20);
    CHECK_THROWS_AS(writer.append("message", {{"text", std::string(500, 'x')}}), std::system_error);
  }
  CHECK(std::filesystem::file_size(spool) == size);
  writer.append("end");
  const auto lines = tests::read_lines(spool);
  REQUIRE(lines.size() == 2);
  CHECK(parse_line(lines[1]).record->seq == 1);
}

TEST_CASE("a spool in a missing folder is a system error") {
  CHECK_THROWS_AS(RecordWriter("/nonexistent/spool", "a", 1, 0), std::system_error);
}
