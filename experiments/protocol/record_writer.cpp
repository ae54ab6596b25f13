#include "experiments/protocol/record_writer.h"

#include <algorithm>
#include <cerrno>
#include <system_error>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file_error.h"
#include "experiments/protocol/record.h"

namespace trainyard::experiments {

namespace {

std::string content(int fd, const std::filesystem::path& file) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) throw_file_error(file);
  std::string bytes(static_cast<std::size_t>(status.st_size), '\0');
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t count = ::pread(fd, bytes.data() + done, bytes.size() - done, static_cast<off_t>(done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw_file_error(file);
    if (count == 0) break;
    done += static_cast<std::size_t>(count);
  }
  bytes.resize(done);
  return bytes;
}

void truncate(int fd, std::size_t size, const std::filesystem::path& file) {
  if (::ftruncate(fd, static_cast<off_t>(size)) != 0) throw_file_error(file);
}

// One `write`: a reader sees the whole line or none of it. What a full disk took of it is cut off again.
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

RecordWriter::RecordWriter(const std::filesystem::path& spool, std::string run, int attempt,
                           std::optional<int> rank)
    : spool_(spool),
      run_(std::move(run)),
      attempt_(attempt),
      rank_(rank),
      start_(std::chrono::steady_clock::now()) {
  fd_ = ::open(spool_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0644);
  if (fd_ < 0) throw_file_error(spool_);
  try {
    const std::string bytes = content(fd_, spool_);
    const std::size_t whole = bytes.rfind('\n') + 1;  // npos + 1 is 0
    if (whole != bytes.size()) truncate(fd_, whole, spool_);
    next_seq_ = std::count(bytes.begin(), bytes.end(), '\n');
  } catch (...) {
    ::close(fd_);
    throw;
  }
}

RecordWriter::~RecordWriter() {
  ::close(fd_);
}

void RecordWriter::append(const std::string& type, const nlohmann::ordered_json& body) {
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start_;
  nlohmann::ordered_json record{{"v", record_version}, {"run", run_}, {"attempt", attempt_}};
  if (rank_) record["rank"] = *rank_;
  record["seq"] = next_seq_;
  record["type"] = type;
  record["time"] = utc_now();
  record["elapsed_seconds"] = elapsed.count();
  for (const auto& [name, value] : body.items()) record[name] = value;
  write_whole(fd_, sealed_line(record) + '\n', spool_);
  ++next_seq_;
}

void RecordWriter::sync() {
  if (::fsync(fd_) != 0) throw_file_error(spool_);
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

}  // namespace trainyard::experiments
