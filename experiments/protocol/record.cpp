#include "experiments/protocol/record.h"

#include <array>
#include <chrono>
#include <limits>

#include "base/error.h"
#include "base/json_members.h"
#include "experiments/protocol/crc32c.h"
#include "experiments/protocol/utc_time.h"

namespace trainyard::experiments {

using nlohmann::json;

namespace {

constexpr std::string_view crc_member = ",\"crc\"";

std::string integer_problem(const json& object, const char* name, std::int64_t minimum,
                            std::int64_t maximum) {
  const auto member = object.find(name);
  if (member == object.end()) return std::string("no member ") + name;
  if (!fits<std::int64_t>(*member) || member->get<std::int64_t>() < minimum ||
      member->get<std::int64_t>() > maximum)
    return std::string(name) + " is not an integer from " + std::to_string(minimum) + " to " +
           std::to_string(maximum);
  return {};
}

std::string text_problem(const json& object, const char* name) {
  const auto member = object.find(name);
  if (member == object.end()) return std::string("no member ") + name;
  if (!member->is_string() || member->get_ref<const std::string&>().empty())
    return std::string(name) + " is not a text";
  return {};
}

// Where there is none, `time` becomes that of `object`.
std::string time_problem(const json& object, std::string& time) {
  if (std::string problem = text_problem(object, "time"); !problem.empty()) return problem;
  const auto utc = utc_time(object.at("time").get_ref<const std::string&>());
  if (!utc)
    return "time is not one of RFC 3339, as \"2026-11-20T09:30:12.345Z\" is (without a zone it is UTC)";
  time = *utc;
  return {};
}

std::string elapsed_problem(const json& object) {
  const auto member = object.find("elapsed_seconds");
  if (member == object.end()) return "no member elapsed_seconds";
  if (!member->is_number() || !(member->get<double>() >= 0)) return "elapsed_seconds is not a number >= 0";
  return {};
}

// Why `object` is no record; empty where it is one, and then `time` is its time.
std::string member_problem(const json& object, std::string& time) {
  constexpr auto max_int = std::numeric_limits<int>::max();
  constexpr auto max_integer = std::numeric_limits<std::int64_t>::max();
  if (!object.is_object()) return "not a JSON object";
  const std::array<std::string, 8> problems{
      integer_problem(object, "v", record_version, record_version),
      text_problem(object, "run"),
      integer_problem(object, "attempt", 1, max_int),
      object.contains("rank") ? integer_problem(object, "rank", 0, max_int) : "",
      integer_problem(object, "seq", 0, max_integer),
      text_problem(object, "type"),
      time_problem(object, time),
      elapsed_problem(object)};
  for (const std::string& problem : problems)
    if (!problem.empty()) return problem;
  return {};
}

// Why the seal of `line`, whose object is `object`, is broken; empty where it holds or there is none.
std::string seal_problem(std::string_view line, const json& object) {
  const auto crc = object.find("crc");
  if (crc == object.end()) return {};
  const std::size_t place = line.rfind(crc_member);
  if (!crc->is_string() || place == std::string_view::npos)
    return "crc is not the last member, written as ,\"crc\":\"8 hexadecimal digits\"";
  const std::string expected = hexadecimal(crc32c(line.substr(0, place)));
  const std::string& found = crc->get_ref<const std::string&>();
  return found == expected ? "" : "CRC is " + found + ", should be " + expected;
}

Record to_record(json object, std::string time) {
  Record record;
  object.at("run").get_to(record.run);
  object.at("attempt").get_to(record.attempt);
  if (object.contains("rank")) record.rank = object.at("rank").get<int>();
  object.at("seq").get_to(record.seq);
  object.at("type").get_to(record.type);
  record.time = std::move(time);
  object.at("elapsed_seconds").get_to(record.elapsed_seconds);
  object.erase("crc");
  record.body = std::move(object);
  return record;
}

// `line` with null for NaN, Infinity and -Infinity, which Python's json writes and JSON does not have; texts
// stay as they are. Nothing if there is none.
std::optional<std::string> without_nan(std::string_view line) {
  std::string text;
  bool in_text = false, replaced = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const std::string_view rest = line.substr(i);
    if (in_text && line[i] == '\\' && rest.size() > 1)
      text += line[i++];
    else if (line[i] == '"')
      in_text = !in_text;
    std::size_t length = 0;
    for (const std::string_view word : {"NaN", "Infinity", "-Infinity"})
      if (!in_text && rest.starts_with(word)) length = word.size();
    if (length == 0) {
      text += line[i];
      continue;
    }
    text += "null";
    i += length - 1;
    replaced = true;
  }
  return replaced ? std::optional(text) : std::nullopt;
}

// json::exception if it is none.
json parsed(std::string_view line) {
  json object = json::parse(line.begin(), line.end(), nullptr, /*allow_exceptions=*/false);
  if (!object.is_discarded()) return object;
  const auto text = without_nan(line);
  return text ? json::parse(*text) : json::parse(line.begin(), line.end());
}

}  // namespace

std::string sealed_line(const nlohmann::ordered_json& object) {
  if (!object.is_object() || object.empty()) throw InternalError("a record is an object with members");
  std::string line = object.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  line.pop_back();  // the closing brace
  const std::string crc = hexadecimal(crc32c(line));
  return line.append(crc_member).append(":\"").append(crc).append("\"}");
}

ParsedLine parse_line(std::string_view line) {
  json object;
  try {
    object = parsed(line);
  } catch (const json::parse_error& error) {
    return {std::nullopt, "not JSON at byte " + std::to_string(error.byte)};
  } catch (const json::exception& error) {  // a number out of range
    return {std::nullopt, std::string("not JSON: ") + error.what()};
  }
  if (!object.is_object()) return {std::nullopt, "not a JSON object"};
  std::string time;
  std::string problem = seal_problem(line, object);
  if (problem.empty()) problem = member_problem(object, time);
  if (!problem.empty()) return {std::nullopt, problem};
  return {to_record(std::move(object), std::move(time)), ""};
}

std::string utc_now() {
  return utc_text(std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now()));
}

}  // namespace trainyard::experiments
