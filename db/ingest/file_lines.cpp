#include "db/ingest/file_lines.h"

#include <cerrno>
#include <string_view>
#include <system_error>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

#include "base/error.h"
#include "base/plain_file.h"

namespace trainyard::db {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t chunk_bytes = std::size_t{256} << 10;
// After so many bytes of a damaged line, the rest of the file is not worth reading.
constexpr std::size_t longest_damage = std::size_t{64} << 20;

[[noreturn]] void refuse_unreadable(const fs::path& file, const std::string& problem) {
  throw UserError("cannot be read: " + problem, "check it and its permissions", {.file = file.string()});
}

// Cuts a stream of bytes into lines. `false` from a call means: stop reading.
class Lines {
 public:
  explicit Lines(const LineReader& reader) : reader_(reader) {}

  bool add(std::string_view bytes) {
    for (std::size_t end = 0; (end = bytes.find('\n')) != std::string_view::npos;) {
      if (!append(bytes.substr(0, end)) || !end_line()) return false;
      bytes.remove_prefix(end + 1);
    }
    return append(bytes);
  }

 private:
  bool append(std::string_view bytes) {
    if (damaged_) return (skipped_ += bytes.size()) < longest_damage;
    const std::size_t zero = bytes.find('\0');
    if (zero != std::string_view::npos)
      return leave_out(DamagedLine::Kind::zeros,
                       "zeros from byte " + std::to_string(line_.size() + zero + 1) + " of the line on");
    if (line_.size() + bytes.size() > reader_.longest_line)
      return leave_out(DamagedLine::Kind::too_long,
                       "longer than " + std::to_string(reader_.longest_line >> 20) + " MiB");
    line_.append(bytes);
    return true;
  }

  bool leave_out(DamagedLine::Kind kind, const std::string& problem) {
    damaged_ = true;
    skipped_ = 0;
    return reader_.damaged({kind, number_, problem});
  }

  bool end_line() {
    const bool goes_on = damaged_ || reader_.take(line_, number_);
    damaged_ = false;
    line_.clear();
    ++number_;
    return goes_on;
  }

  const LineReader& reader_;
  std::string line_;
  std::int64_t number_ = 1;
  bool damaged_ = false;  // the rest of this line is skipped
  std::size_t skipped_ = 0;
};

}  // namespace

std::string why_not_plain(const fs::path& file) {
  const auto status = fs::symlink_status(file);
  if (!fs::exists(status) || fs::is_regular_file(status)) return "";
  if (fs::is_symlink(status)) return "is a link, which is not followed";
  return fs::is_directory(status) ? "is a folder, not a plain file" : "is not a plain file";
}

void read_lines(const fs::path& file, const LineReader& reader) {
  if (const std::string why = why_not_plain(file); !why.empty()) {
    reader.damaged({DamagedLine::Kind::not_plain, 0, why});
    return;
  }
  const OpenedFile opened = open_plain(file, O_RDONLY | O_NOFOLLOW);
  if (!opened.fd) refuse_unreadable(file, opened.problem);
  Lines lines(reader);
  std::vector<char> chunk(chunk_bytes);
  while (true) {
    const ssize_t count = ::read(opened.fd.get(), chunk.data(), chunk.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) refuse_unreadable(file, std::generic_category().message(errno));
    if (count == 0 || !lines.add({chunk.data(), static_cast<std::size_t>(count)})) return;
  }
}

}  // namespace trainyard::db
