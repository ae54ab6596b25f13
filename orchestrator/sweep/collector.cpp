#include "orchestrator/sweep/collector.h"

#include <algorithm>
#include <array>

#include <boost/algorithm/string/predicate.hpp>
#include <boost/algorithm/string/trim.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/log.h"
#include "base/plain_file.h"
#include "experiments/protocol/record_lines.h"

namespace trainyard::orchestrator {

namespace {

constexpr std::size_t bytes_per_poll = RecordLogTail::usual_bytes;  // of all files together
constexpr std::size_t least_bytes_per_poll = 16384;                 // of each file
constexpr int most_reported_lines = 10;                             // left-out lines of a file with a message

std::string spool_name(std::optional<int> rank) {
  return rank ? experiments::rank_records_name(*rank) : experiments::orchestrator_records_name;
}

std::optional<double> number_member(const nlohmann::json& object, const char* member) {
  const auto found = object.find(member);
  if (found == object.end() || !found->is_number()) return std::nullopt;
  return found->get<double>();
}

}  // namespace

std::string text_member(const nlohmann::json& object, const char* member) {
  const auto found = object.find(member);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

Collector::Collector(AttemptPlace place, nlohmann::json run_file, db::Ingest& ingest)
    : place_(std::move(place)), run_file_(std::move(run_file)), ingest_(ingest) {
  const auto follow = [this](std::optional<int> rank) {
    spools_.push_back({RecordLogTail(place_.directory / spool_name(rank), place_.shared), rank});
  };
  follow(std::nullopt);
  for (int rank = 0; rank < place_.world_size; ++rank) follow(rank);
}

void Collector::collect() {
  const auto records = new_records();
  if (records.empty() && run_file_.is_null()) return;
  std::vector<db::Accepted> accepted;
  ingest_.together([&] {
    if (!run_file_.is_null()) refused_ = ingest_.run_file(run_file_) == db::Accepted::refused;
    for (const auto& record : records) accepted.push_back(ingest_.record(record));
  });
  run_file_ = nullptr;
  for (std::size_t i = 0; i < records.size(); ++i) note(records[i], accepted[i]);
}

void Collector::collect_all() {
  do collect();
  while (!drained_);
}

std::vector<experiments::Record> Collector::new_records() {
  std::vector<experiments::Record> records;
  for (auto& spool : spools_)
    if (!spool.over) take_lines(spool, records);
  drained_ = std::ranges::all_of(spools_, [](const Spool& each) { return each.over || each.tail.at_end(); });
  return records;
}

void Collector::take_lines(Spool& spool, std::vector<experiments::Record>& records) {
  const auto lines = spool.tail.new_lines(std::max(bytes_per_poll / spools_.size(), least_bytes_per_poll));
  if (!lines.empty())
    spool.tail.sync();  // on local file systems this makes the name of a new file durable too
  std::int64_t number = spool.tail.lines() - static_cast<std::int64_t>(lines.size());
  for (const std::string& line : lines) {
    ++number;
    auto parsed = experiments::parse_line(line);
    if (parsed.record) parsed.problem = problem_with(*parsed.record, spool);
    if (parsed.problem.empty()) {
      records.push_back(std::move(*parsed.record));
      continue;
    }
    ++spool.left_out;
    if (spool.left_out <= most_reported_lines)
      leave_out(spool.rank, "a line was left out: " + parsed.problem);
    if (spool.left_out == most_reported_lines) leave_out(spool.rank, "more such lines are not reported");
    if (spool.left_out > experiments::most_left_out_lines)
      return exceed(
          spool, number,
          fmt::format("more than {} lines are not records of this run", experiments::most_left_out_lines));
  }
  if (spool.tail.too_long())
    return exceed(spool, number + 1,
                  fmt::format("the line is longer than {} MiB", experiments::longest_record >> 20));
  if (spool.tail.bytes() > experiments::largest_record_log)
    exceed(spool, number + 1,
           fmt::format("the file is larger than {} MiB", experiments::largest_record_log >> 20));
}

void Collector::exceed(Spool& spool, std::int64_t line, const std::string& why) {
  spool.over = true;
  const std::string where = fmt::format("{}:{}", spool_name(spool.rank), line);
  leave_out(spool.rank, fmt::format("the lines from {} on were left out: {}", line, why));
  over_limits_.push_back(
      {spool.rank, line,
       fmt::format("{}: {}. Write one record per line, and other output to standard output", where, why)});
}

nlohmann::ordered_json to_json(const OverLimit& over) {
  nlohmann::ordered_json body{{"line", over.line}, {"why", over.why}};
  if (over.rank) body["of_rank"] = *over.rank;
  return body;
}

std::string Collector::problem_with(const experiments::Record& record, const Spool& spool) const {
  if (record.run == place_.key && record.attempt == place_.attempt && record.rank == spool.rank) return "";
  return fmt::format("it belongs to run {}, attempt {}{}", record.run, record.attempt,
                     record.rank ? fmt::format(", rank {}", *record.rank) : "");
}

void Collector::leave_out(std::optional<int> rank, const std::string& what) {
  left_out_.emplace(rank, what);
  messages_.push_back(spool_name(rank) + ": " + what);
}

std::optional<std::string> Collector::left_out(int rank) const {
  const auto found = left_out_.find(rank);
  return found == left_out_.end() ? std::nullopt : std::optional(found->second);
}

// Notes only records that the database accepted, so that both agree on the state of a run.
void Collector::note(const experiments::Record& record, db::Accepted accepted) {
  if (accepted == db::Accepted::gap || accepted == db::Accepted::refused) {
    if (record.type == "end" && record.rank && text_member(record.body, "status") == "finished")
      unheard_ends_.insert(*record.rank);
    if (incomplete_.insert(record.rank).second)
      leave_out(
          record.rank,
          fmt::format("records from number {} on were left out: an earlier record is missing", record.seq));
    return;
  }
  if (accepted == db::Accepted::conflict) {
    if (conflicts_.insert(record.rank).second)
      leave_out(record.rank,
                fmt::format("the database has another record with the number {}, and keeps it", record.seq));
    return;
  }
  if (record.type == "cause" && !record.rank) has_cause_ = true;
  if (record.type == "end" && record.rank) note_end(record);
  if (record.type == "epoch" && record.rank) note_epoch(record);
  if (record.type == "test") note_test(record);
  if (record.type == "message") note_message(record);
}

void Collector::note_end(const experiments::Record& record) {
  ends_[*record.rank] = {text_member(record.body, "status") == "finished", text_member(record.body, "error"),
                         experiments::end_reason_named(text_member(record.body, "reason"))};
}

void Collector::note_epoch(const experiments::Record& record) {
  const auto epoch = record.body.find("epoch");
  if (epoch != record.body.end() && epoch->is_number_integer()) epochs_[*record.rank] = *epoch;
}

void Collector::note_test(const experiments::Record& record) {
  const auto metrics = record.body.find("metrics");
  if (metrics == record.body.end() || !metrics->is_array()) return;
  for (const auto& metric : *metrics) {
    const auto sum = number_member(metric, "sum");
    const auto weight = number_member(metric, "weight");
    if (text_member(metric, "phase") != "test" || !sum || !weight) continue;
    WeightedSum& total = test_[text_member(metric, "name")];
    total.sum += *sum;
    total.weight += *weight;
  }
}

void Collector::note_message(const experiments::Record& record) {
  if (!record.rank) return;  // the orchestrator shows its own messages itself
  const std::string level = text_member(record.body, "level");
  if (level == "warning" || level == "error")
    messages_.push_back(fmt::format("rank {}: {}", *record.rank, text_member(record.body, "text")));
}

std::int64_t Collector::epochs() const {
  if (std::ssize(epochs_) < place_.world_size) return 0;
  const auto of_rank = [](const auto& each) { return each.second; };
  return std::ranges::min_element(epochs_, {}, of_rank)->second;
}

const Collector::End* Collector::end(int rank) const {
  const auto found = ends_.find(rank);
  return found == ends_.end() ? nullptr : &found->second;
}

bool Collector::finished(int rank) const {
  const End* found = end(rank);
  return found != nullptr && found->finished;
}

bool Collector::finished() const {
  for (int rank = 0; rank < place_.world_size; ++rank)
    if (!finished(rank)) return false;
  return true;
}

std::optional<double> Collector::test_mean(const std::string& metric) const {
  const auto found = test_.find(metric);
  if (found == test_.end() || found->second.weight <= 0) return std::nullopt;
  return found->second.sum / found->second.weight;
}

namespace {

constexpr std::streamoff tail_bytes = 65536;

bool looks_like_an_error(const std::string& line) {
  static constexpr std::array<const char*, 9> words{"error",  "exception", "what():", "fatal", "abort",
                                                    "assert", "terminate", "killed",  "cannot"};
  return std::ranges::any_of(words, [&](const char* word) { return boost::icontains(line, word); });
}

}  // namespace

// Routine lines of trainyard's own ranks do not explain a failure.
static bool is_quiet(const std::string& line) {
  const auto level = log::level_of_line(line);
  return level && *level < log::Level::warning;
}

// Last line of `log` for which `wanted` is true.
template <typename Wanted>
static std::optional<std::string> last_of(const std::filesystem::path& log, Wanted&& wanted) {
  PlainFileReader stream(log);
  if (!stream) return std::nullopt;
  stream.seekg(0, std::ios::end);
  stream.seekg(std::max<std::streamoff>(0, static_cast<std::streamoff>(stream.tellg()) - tail_bytes));
  std::optional<std::string> last;
  for (std::string line; std::getline(stream, line);)
    if (!is_quiet(line) && wanted(line)) last = boost::trim_copy(line);
  return last;
}

std::optional<std::string> last_error_line(const std::filesystem::path& log) {
  return last_of(log, looks_like_an_error);
}

std::optional<std::string> last_line(const std::filesystem::path& log) {
  auto line = last_of(log, [](const std::string& each) {
    return std::ranges::any_of(each, [](unsigned char c) { return c > 0x7f || std::isgraph(c); });
  });
  if (line) line = boost::trim_copy(line->substr(line->rfind('\r') + 1));  // npos + 1 is 0
  return line;
}

}  // namespace trainyard::orchestrator
