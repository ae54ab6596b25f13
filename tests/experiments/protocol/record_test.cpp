// Records: sealing and parsing.
#include "experiments/protocol/record.h"

#include <regex>

#include <doctest/doctest.h>

#include "base/error.h"
#include "experiments/protocol/crc32c.h"

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

TEST_CASE("the example of the contract is valid, and sealing it gives the same bytes") {
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

TEST_CASE("a truncated record is not a record, and does not make the parser throw") {
  for (std::size_t size = 0; size < example.size(); ++size) {
    const ParsedLine parsed = parse_line(std::string_view(example).substr(0, size));
    CHECK_FALSE(parsed.record.has_value());
    CHECK_FALSE(parsed.problem.empty());
  }
}

TEST_CASE("any flipped bit is detected, unless it is in the seal's own name and the content is intact") {
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

TEST_CASE("the error for a wrong CRC names the right one") {
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

TEST_CASE("the error for an invalid record gives the reason") {
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
        "time is not an RFC 3339 time, as in \"2026-11-20T09:30:12.345Z\" (without a zone it is UTC)");
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

TEST_CASE("a record that is nested too deeply for its readers is refused") {
  const auto nested = [](std::size_t levels) {
    return R"({"v":1,"run":"a","attempt":1,"seq":0,"type":"odd","time":"2026-11-20T09:30:12Z","elapsed_seconds":1,"x":)" +
           std::string(levels, '[') + "\"]]\\\"[[\"" + std::string(levels, ']') + "}";
  };
  CHECK(problem(nested(99)).empty());
  CHECK(problem(nested(100)) == "nested deeper than 100 levels");
  CHECK(problem(nested(500'000)) ==
        "nested deeper than 100 levels");  // copies of it would overflow the stack
}

// As written by Python 3.11 for json.dumps({"sum": math.nan, …}).
TEST_CASE("Python's NaN and infinities become null, and texts with these words are unchanged") {
  const std::string head =
      R"({"v":1,"run":"a","attempt":1,"seq":0,"type":"message","time":"2026-11-20T09:30:12Z","elapsed_seconds":1,)";
  const auto parsed = parse_line(
      head + R"("loss": NaN, "all": [Infinity, -Infinity, 1.5], "text": "a \"NaN\" \\", "more": NaN})");
  REQUIRE_MESSAGE(parsed.record.has_value(), parsed.problem);
  const auto& body = parsed.record->body;
  CHECK(body.at("loss").is_null());
  CHECK(body.at("all").dump() == "[null,null,1.5]");
  CHECK(body.at("text") == "a \"NaN\" \\");
  CHECK(body.at("more").is_null());
  CHECK(problem(head + R"("loss": NaN)").starts_with("not JSON"));
  CHECK(problem(R"({"v":1,"run":"a","attempt":NaN})") == "attempt is not an integer from 1 to 2147483647");
}

TEST_CASE("deep nesting and invalid UTF-8 are problems, not crashes") {
  CHECK_FALSE(parse_line(std::string(200'000, '[')).record.has_value());
  CHECK_FALSE(parse_line(std::string(100'000, '[') + std::string(100'000, ']')).record.has_value());
  CHECK_FALSE(parse_line("{\"v\":\"\xff\"}").record.has_value());
}

TEST_CASE("invalid UTF-8 is written with replacement characters") {
  const std::string line = sealed_line({{"text", "a\xff"}});
  CHECK(nlohmann::json::parse(line).at("text") == "a\xef\xbf\xbd");
}

TEST_CASE("only an object with members can be sealed") {
  CHECK_THROWS_AS(sealed_line(nlohmann::ordered_json::object()), InternalError);
  CHECK_THROWS_AS(sealed_line(nlohmann::ordered_json::array({1})), InternalError);
}

TEST_CASE("a seal of another length is wrong") {
  std::string line = with_crc(R"({"v":1})");
  REQUIRE(line.size() == 24);
  CHECK(problem(line) == "no member run");  // the seal is correct
  line.erase(20, 2);
  CHECK(problem(line).starts_with("CRC is "));
}
