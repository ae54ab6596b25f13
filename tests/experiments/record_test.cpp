// Records: seal, parse, append.
#include "experiments/record.h"

#include <cstdio>
#include <regex>

#include <doctest/doctest.h>
#include <fcntl.h>

#include "experiments/crc32c.h"
#include "experiments/record_writer.h"
#include "experiments/utc_time.h"
#include "file_size_limit.h"
#include "models/error.h"
#include "scratch_folder.h"

using namespace trainyard;
using namespace trainyard::experiments;

namespace {

// The example of the record contract (ARCHITECTURE.md).
const std::string example =
    R"({"v":1,"run":"3f9a1c20b7de","attempt":1,"rank":0,"seq":4,"type":"epoch","time":"2026-11-20T09:30:12.345Z","elapsed_seconds":12.75,"epoch":2,"train_seconds":1.5,"validation_seconds":0.125,"seconds":{"data":0.0625,"forward":0.5,"backward":0.75,"exposed_communication":0.0625,"bubble":0,"optimizer":0.09375,"other":0.03125},"metrics":[{"phase":"train","name":"loss","sum":1234.5,"weight":4000},{"phase":"train","name":"correct","sum":3720,"weight":4000}],"crc":"ab4be0be"})";

std::string with_crc(const std::string& object) {
  return sealed_line(nlohmann::ordered_json::parse(object));
}

std::string problem(const std::string& line) {
  return parse_line(line).problem;
}

std::vector<std::string> lines_of(const std::filesystem::path& file) {
  std::vector<std::string> lines;
  std::istringstream text(tests::read_text(file));
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  return lines;
}

}  // namespace

TEST_CASE("CRC-32C has its published check value") {
  CHECK(crc32c("123456789") == 0xe3069283);
  CHECK(crc32c("") == 0);
}

// RFC 3720, B.4: the CRC is sent with its lowest byte first.
TEST_CASE("CRC-32C of the examples of iSCSI, in one piece or in several") {
  std::string rising(32, ' ');
  for (std::size_t i = 0; i < rising.size(); ++i) rising[i] = static_cast<char>(i);
  CHECK(crc32c(std::string(32, '\0')) == 0x8a9136aa);
  CHECK(crc32c(std::string(32, '\xff')) == 0x62a8ab43);
  CHECK(crc32c(rising) == 0x46dd794e);
  for (std::size_t cut = 0; cut <= rising.size(); ++cut)
    CHECK(crc32c(rising.substr(cut), crc32c(rising.substr(0, cut))) == 0x46dd794e);
}

TEST_CASE("the example of the contract verifies and is sealed to the same bytes") {
  const ParsedLine parsed = parse_line(example);
  REQUIRE_MESSAGE(parsed.record.has_value(), parsed.problem);
  CHECK(parsed.record->run == "3f9a1c20b7de");
  CHECK(parsed.record->attempt == 1);
  CHECK(parsed.record->rank == 0);
  CHECK(parsed.record->seq == 4);
  CHECK(parsed.record->type == "epoch");
  CHECK(parsed.record->time == "2026-11-20T09:30:12.345Z");
  CHECK(parsed.record->elapsed_seconds == 12.75);
  CHECK(parsed.record->body.at("metrics").at(1).at("sum") == 3720);
  CHECK_FALSE(parsed.record->body.contains("crc"));
  auto object = nlohmann::ordered_json::parse(example);
  object.erase("crc");
  CHECK(sealed_line(object) == example);
}

TEST_CASE("no beginning of a record is a record, and none makes the parser throw") {
  for (std::size_t size = 0; size < example.size(); ++size) {
    const ParsedLine parsed = parse_line(std::string_view(example).substr(0, size));
    CHECK_FALSE(parsed.record.has_value());
    CHECK_FALSE(parsed.problem.empty());
  }
}

TEST_CASE("a flipped bit anywhere is found, or has hit the seal's own name and left the content whole") {
  const Record original = *parse_line(example).record;
  const std::size_t seal = example.rfind(",\"crc\"");
  for (std::size_t bit = 0; bit < example.size() * 8; ++bit) {
    std::string line = example;
    line[bit / 8] = static_cast<char>(line[bit / 8] ^ (1 << (bit % 8)));
    const ParsedLine parsed = parse_line(line);
    CHECK(parsed.record.has_value() == parsed.problem.empty());
    if (!parsed.record) continue;
    CHECK(bit / 8 > seal);
    for (const auto& [name, value] : original.body.items()) CHECK(parsed.record->body.at(name) == value);
  }
}

TEST_CASE("a wrong CRC is named beside the right one") {
  std::string line = example;
  line.replace(line.find("12.75"), 5, "12.25");
  const std::string text = problem(line);
  CHECK(std::regex_match(text, std::regex("CRC is ab4be0be, should be [0-9a-f]{8}")));
}

TEST_CASE("a foreign record needs no CRC, and keeps unknown members and types") {
  const ParsedLine parsed = parse_line(
      R"( {"v":1, "run":"a", "attempt":2, "rank":1, "seq":0, "type":"surprise", "time":"2026-11-20 09:30:12", "elapsed_seconds":1, "x":[1]} )");
  REQUIRE_MESSAGE(parsed.record.has_value(), parsed.problem);
  CHECK(parsed.record->type == "surprise");
  CHECK(parsed.record->body.at("x").at(0) == 1);
  CHECK(parsed.record->time == "2026-11-20T09:30:12.000Z");
  CHECK(parsed.record->body.at("time") == "2026-11-20 09:30:12");
}

TEST_CASE("what is no record says why") {
  CHECK(problem("") == "not JSON at byte 1");
  CHECK(problem("{\"v\":1,}") == "not JSON at byte 8");
  CHECK(problem("[1]") == "not a JSON object");
  CHECK(problem("{}") == "no member v");
  CHECK(problem(R"({"v":2})") == "v is not an integer from 1 to 1");
  CHECK(problem(R"({"v":1})") == "no member run");
  CHECK(problem(R"({"v":1,"run":""})") == "run is not a text");
  CHECK(problem(R"({"v":1,"run":"a","attempt":0})") == "attempt is not an integer from 1 to 2147483647");
  CHECK(problem(R"({"v":1,"run":"a","attempt":1,"rank":-1})") ==
        "rank is not an integer from 0 to 2147483647");
  CHECK(problem(R"({"v":1,"run":"a","attempt":1,"rank":null})") ==
        "rank is not an integer from 0 to 2147483647");
  CHECK(problem(R"({"v":1,"run":"a","attempt":1,"seq":18446744073709551615})") ==
        "seq is not an integer from 0 to 9223372036854775807");
  CHECK(problem(R"({"v":1,"run":"a","attempt":1,"seq":1.5})") ==
        "seq is not an integer from 0 to 9223372036854775807");
  CHECK(problem(R"({"v":1,"run":"a","attempt":1,"seq":1,"type":3})") == "type is not a text");
  CHECK(problem(R"({"v":1,"run":"a","attempt":1,"seq":1,"type":"end"})") == "no member time");
  CHECK(problem(R"({"v":1,"run":"a","attempt":1,"seq":1,"type":"end","time":"soon","elapsed_seconds":1})") ==
        "time is not one of RFC 3339, as \"2026-11-20T09:30:12.345Z\" is (without a zone it is UTC)");
  CHECK(problem(
            R"({"v":1,"run":"a","attempt":1,"seq":1,"type":"end","time":1763631012,"elapsed_seconds":1})") ==
        "time is not a text");
  CHECK(
      problem(
          R"({"v":1,"run":"a","attempt":1,"seq":1,"type":"end","time":"2026-11-20T09:30:12Z","elapsed_seconds":-1})") ==
      "elapsed_seconds is not a number >= 0");
  CHECK(problem(R"({"v":1,"run":"a","elapsed_seconds":1e999})").starts_with("not JSON"));
  CHECK(problem(R"({"crc":"00000000", "v":1})").starts_with("crc is not the last member"));
  CHECK(problem(R"({"v":1,"crc":5})").starts_with("crc is not the last member"));
}

TEST_CASE("deep nesting and bytes that are not UTF-8 are problems, not crashes") {
  CHECK_FALSE(parse_line(std::string(200'000, '[')).record.has_value());
  CHECK_FALSE(parse_line(std::string(100'000, '[') + std::string(100'000, ']')).record.has_value());
  CHECK_FALSE(parse_line("{\"v\":\"\xff\"}").record.has_value());
}

TEST_CASE("text that is not UTF-8 is written with replacement characters") {
  const std::string line = sealed_line({{"text", "a\xff"}});
  CHECK(nlohmann::json::parse(line).at("text") == "a\xef\xbf\xbd");
}

TEST_CASE("only an object with members can be sealed") {
  CHECK_THROWS_AS(sealed_line(nlohmann::ordered_json::object()), InternalError);
  CHECK_THROWS_AS(sealed_line(nlohmann::ordered_json::array({1})), InternalError);
}

// The first five are those of RFC 3339, section 5.8, each with the instant that it is said there to be. The
// others are what Python's datetime and Unix's `date` write for one instant.
TEST_CASE("times of RFC 3339 become UTC with milliseconds, whose texts are in the order of the times") {
  const std::vector<std::pair<std::string, std::string>> times{
      {"1985-04-12T23:20:50.52Z", "1985-04-12T23:20:50.520Z"},
      {"1996-12-19T16:39:57-08:00", "1996-12-20T00:39:57.000Z"},
      {"1990-12-31T23:59:60Z", "1991-01-01T00:00:00.000Z"},
      {"1990-12-31T15:59:60-08:00", "1991-01-01T00:00:00.000Z"},
      {"1937-01-01T12:00:27.87+00:20", "1937-01-01T11:40:27.870Z"},
      {"2026-11-20T09:30:12.345678+00:00", "2026-11-20T09:30:12.345Z"},
      {"2026-11-20 09:30:12.345678", "2026-11-20T09:30:12.345Z"},
      {"2026-11-20 11:30:12.345999+02:00", "2026-11-20T09:30:12.345Z"},
      {"2026-11-20t09:30:12.345z", "2026-11-20T09:30:12.345Z"},
      {"2024-02-29T23:59:59-00:01", "2024-03-01T00:00:59.000Z"}};
  for (const auto& [text, utc] : times) CHECK(utc_time(text) == utc);
}

TEST_CASE("what is no time is none, whatever part of it is wrong") {
  for (const char* text : {"",
                           "now",
                           "t",
                           "1763631012",
                           "2026-11-20",
                           "09:30:12Z",
                           "2026-11-20T09:30Z",
                           "2026-13-20T09:30:12Z",
                           "2026-11-31T09:30:12Z",
                           "2025-02-29T09:30:12Z",
                           "2026-00-20T09:30:12Z",
                           "2026-11-20T24:00:00Z",
                           "2026-11-20T09:60:12Z",
                           "2026-11-20T09:30:61Z",
                           "2026-11-20T09:30:12.Z",
                           "2026-11-20T09:30:12,345Z",
                           "2026-11-20T09:30:12+0200",
                           "2026-11-20T09:30:12+24:00",
                           "2026-11-20T09:30:12Z+02:00",
                           "2026-11-20T09:30:12 UTC",
                           " 2026-11-20T09:30:12Z",
                           "2026-11-20T09:30:12Z ",
                           "+026-11-20T09:30:12Z"})
    CHECK_MESSAGE(!utc_time(text), text);
}

TEST_CASE("now is UTC with milliseconds") {
  CHECK(std::regex_match(utc_now(), std::regex(R"(20\d\d-[01]\d-[0-3]\dT[0-2]\d:[0-5]\d:[0-6]\d\.\d{3}Z)")));
}

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
  const auto lines = lines_of(spool);
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

TEST_CASE("the orchestrator's own records have no rank") {
  const tests::ScratchFolder folder;
  RecordWriter(folder / orchestrator_records_name, "a", 1, std::nullopt)
      .append("leased", {{"devices", {"cpu:0"}}});
  const ParsedLine parsed = parse_line(lines_of(folder / orchestrator_records_name).at(0));
  REQUIRE(parsed.record.has_value());
  CHECK_FALSE(parsed.record->rank.has_value());
  CHECK_FALSE(parsed.record->body.contains("rank"));
}

TEST_CASE("a spool opened again goes on after its last whole record; a torn line is cut off") {
  const tests::ScratchFolder folder;
  const auto spool = folder / "spool";
  RecordWriter(spool, "a", 1, 0).append("start");
  tests::write_text(spool, tests::read_text(spool) + R"({"v":1,"run":"a","attempt":1,"ra)");
  RecordWriter(spool, "a", 1, 0).append("end");
  const auto lines = lines_of(spool);
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
  const auto lines = lines_of(spool);
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

TEST_CASE("what a full disk took of a record is cut off again") {
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
  const auto lines = lines_of(spool);
  REQUIRE(lines.size() == 2);
  CHECK(parse_line(lines[1]).record->seq == 1);
}

TEST_CASE("a spool in a folder that is not there is a system error") {
  CHECK_THROWS_AS(RecordWriter("/nonexistent/spool", "a", 1, 0), std::system_error);
}

TEST_CASE("a seal of another length is a wrong one") {
  std::string line = with_crc(R"({"v":1})");
  REQUIRE(line.size() == 24);
  CHECK(problem(line) == "no member run");  // the seal holds
  line.erase(20, 2);
  CHECK(problem(line).starts_with("CRC is "));
}
