#include "experiments/protocol/record.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <limits>
#include <regex>

#include <fcntl.h>
#include <fmt/chrono.h>
#include <unistd.h>

#include "base/error.h"
#include "base/files.h"
#include "base/json_members.h"
#include "base/plain_file.h"
#include "experiments/protocol/record_lines.h"
#include "experiments/protocol/seal.h"

namespace trainyard::experiments {

using nlohmann::json;

namespace {

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

// If there is no problem, sets `time` to the UTC time of `object`.
std::string time_problem(const json& object, std::string& time) {
  if (std::string problem = text_problem(object, "time"); !problem.empty()) return problem;
  const auto utc = utc_time(object.at("time").get_ref<const std::string&>());
  if (!utc)
    return "time is not an RFC 3339 time, as in \"2026-11-20T09:30:12.345Z\" (without a zone it is UTC)";
  time = *utc;
  return {};
}

std::string elapsed_problem(const json& object) {
  const auto member = object.find("elapsed_seconds");
  if (member == object.end()) return "no member elapsed_seconds";
  if (!member->is_number() || !(member->get<double>() >= 0)) return "elapsed_seconds is not a number >= 0";
  return {};
}

// Why `object` is not a record. Empty if it is one; then `time` is set.
std::string member_problem(const json& object, std::string& time) {
  constexpr auto max_int = std::numeric_limits<int>::max();
  constexpr auto max_integer = std::numeric_limits<std::int64_t>::max();
  const std::array<std::string, 8> problems{
      integer_problem(object, "v", format_version, format_version),
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

// `line` with null instead of NaN, Infinity and -Infinity, which Python writes but JSON does not allow.
// Strings stay unchanged. Empty if there is nothing to replace.
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

// Whether brackets are nested deeper than a reader of the JSON can follow: copies of it are recursive, and
// SQLite reads at most 1000 levels.
bool too_deep(std::string_view line) {
  constexpr std::ptrdiff_t deepest = 100;
  const auto opens = [](char c) { return c == '[' || c == '{'; };
  if (std::ranges::count_if(line, opens) <= deepest) return false;
  std::ptrdiff_t depth = 0;
  bool in_text = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '"') in_text = !in_text;
    if (in_text && line[i] == '\\') ++i;
    if (in_text) continue;
    if (opens(line[i]) && ++depth > deepest) return true;
    if (line[i] == ']' || line[i] == '}') --depth;
  }
  return false;
}

// The JSON of a line. json::exception if it is not JSON.
json parsed(std::string_view line) {
  json object = json::parse(line.begin(), line.end(), nullptr, /*allow_exceptions=*/false);
  if (!object.is_discarded()) return object;
  const auto text = without_nan(line);
  return text ? json::parse(*text) : json::parse(line.begin(), line.end());
}

std::string utc_text(RecordTime time) {
  const auto second = std::chrono::floor<std::chrono::seconds>(time);
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z", fmt::gmtime(second.time_since_epoch().count()),
                     (time - second).count());
}

}  // namespace

std::string sealed_line(const nlohmann::ordered_json& object) {
  if (!object.is_object() || object.empty()) throw InternalError("a record is an object with members");
  return sealed(object.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}

ParsedLine parse_line(std::string_view line) {
  if (too_deep(line)) return {std::nullopt, "nested deeper than 100 levels"};
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
  std::string problem = seal_problem(line, object, Seal::optional);
  if (problem.empty()) problem = member_problem(object, time);
  if (!problem.empty()) return {std::nullopt, std::move(problem)};
  return {to_record(std::move(object), std::move(time)), ""};
}

std::string utc_now() {
  return utc_text(std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now()));
}

namespace {

struct WholeLines {
  std::size_t bytes = 0;  // to the end of the last one
  std::int64_t next = 0;  // the number of the next record
  bool torn = false;      // bytes follow
};

// Records may begin after 0, if the file has lost some. A last line that no reader accepts is not parsed.
WholeLines whole_lines(const std::filesystem::path& file) {
  PlainFileReader in(file, O_NOFOLLOW);
  WholeLines lines;
  std::string line, last;
  for (; std::getline(in, line) && !in.eof(); line.swap(last)) {
    lines.bytes += line.size() + 1;
    ++lines.next;
  }
  if (in.bad() && in.problem().empty()) throw_file_error(file, EIO);
  lines.torn = !line.empty();
  if (last.size() > longest_record) return lines;
  if (const ParsedLine parsed = parse_line(last); parsed.record)
    lines.next = std::max(lines.next, parsed.record->seq + 1);
  return lines;
}

void truncate(int fd, std::size_t size, const std::filesystem::path& file) {
  if (::ftruncate(fd, static_cast<off_t>(size)) != 0) throw_file_error(file);
}

// Writes with one `write`, so that readers see the whole line or nothing. If the disk is full, a partial line
// is removed again.
void write_whole(int fd, const std::string& line, const std::filesystem::path& file) {
  ssize_t written = -1;
  do {
    written = ::write(fd, line.data(), line.size());
  } while (written < 0 && errno == EINTR);
  if (written < 0) throw_file_error(file);
  if (static_cast<std::size_t>(written) == line.size()) return;
  const off_t end = ::lseek(fd, 0, SEEK_END);
  if (end >= written) truncate(fd, static_cast<std::size_t>(end - written), file);
  throw_file_error(file, ENOSPC);
}

}  // namespace

RecordWriter::RecordWriter(const std::filesystem::path& file, std::string run, int attempt,
                           std::optional<int> rank, std::int64_t at_least)
    : file_(file),
      run_(std::move(run)),
      attempt_(attempt),
      rank_(rank),
      start_(std::chrono::steady_clock::now()) {
  fd_ = FileDescriptor::open(file_, O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW);
  if (!fd_) throw_file_error(file_);
  const WholeLines lines = whole_lines(file_);
  if (lines.torn) truncate(fd_.get(), lines.bytes, file_);
  next_seq_ = std::max(at_least, lines.next);
}

void RecordWriter::append(const std::string& type, const nlohmann::ordered_json& body) {
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start_;
  nlohmann::ordered_json record{{"v", format_version}, {"run", run_}, {"attempt", attempt_}};
  if (rank_) record["rank"] = *rank_;
  record["seq"] = next_seq_;
  record["type"] = type;
  record["time"] = utc_now();
  record["elapsed_seconds"] = elapsed.count();
  for (const auto& [name, value] : body.items()) record[name] = value;
  write_whole(fd_.get(), sealed_line(record) + '\n', file_);
  ++next_seq_;
}

void RecordWriter::sync() {
  if (::fsync(fd_.get()) != 0) throw_file_error(file_);
}

std::string rank_records_name(int rank) {
  return "rank-" + std::to_string(rank) + ".records.jsonl";
}
std::string rank_log_name(int rank) {
  return "rank-" + std::to_string(rank) + ".log";
}
std::string rank_progress_name(int rank) {
  return "rank-" + std::to_string(rank) + ".progress";
}

// RFC 3339, section 5.6; its note allows a space for the "T".
std::optional<RecordTime> time_from(std::string_view text) {
  static const std::regex form(
      R"((\d{4})-(\d\d)-(\d\d)[Tt ](\d\d):(\d\d):(\d\d)(?:\.(\d+))?(?:[Zz]|([+-])(\d\d):(\d\d))?)");
  constexpr std::size_t longest = 100;  // std::regex is recursive
  std::cmatch parts;
  if (text.size() > longest || !std::regex_match(text.begin(), text.end(), parts, form)) return std::nullopt;
  const auto number = [&](std::size_t part) { return parts[part].matched ? std::stoi(parts[part]) : 0; };
  const std::chrono::year_month_day date(std::chrono::year(number(1)),
                                         std::chrono::month(static_cast<unsigned>(number(2))),
                                         std::chrono::day(static_cast<unsigned>(number(3))));
  const bool is_clock = number(4) < 24 && number(5) < 60 && number(6) <= 60;  // 60: a leap second
  if (!date.ok() || !is_clock || number(9) >= 24 || number(10) >= 60) return std::nullopt;
  const std::chrono::minutes offset = std::chrono::hours(number(9)) + std::chrono::minutes(number(10));
  const std::chrono::milliseconds fraction(std::stoi((parts[7].str() + "000").substr(0, 3)));
  return std::chrono::sys_days(date) + std::chrono::hours(number(4)) + std::chrono::minutes(number(5)) +
         std::chrono::seconds(number(6)) + fraction - (parts[8] == "-" ? -offset : offset);
}

std::optional<std::string> utc_time(std::string_view text) {
  const auto time = time_from(text);
  return time ? std::optional(utc_text(*time)) : std::nullopt;
}

}  // namespace trainyard::experiments
