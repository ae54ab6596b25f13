#include "db/ingest/file_lines.h"

#include <cerrno>
#include <string_view>
#include <system_error>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

#include "base/error.h"
#include "base/plain_file.h"
#include "experiments/protocol/record_lines.h"

namespace trainyard::db {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t chunk_bytes = std::size_t{256} << 10;

[[noreturn]] void refuse_unreadable(const fs::path& file, const std::string& problem) {
  throw UserError("cannot be read: " + problem, "check it and its permissions", {.file = file.string()});
}

std::string zeros_from(std::size_t byte) {
  return "zeros from byte " + std::to_string(byte + 1) + " of the line on";
}

// Gives the whole lines to the reader. Returns whether to continue.
bool take_lines(experiments::RecordLines& lines, const LineReader& reader) {
  using Kind = DamagedLine::Kind;
  while (const auto line = lines.next()) {
    const std::size_t zero = line->find('\0');
    if (zero == std::string::npos ? !reader.take(*line, lines.count())
                                  : !reader.damaged({Kind::zeros, lines.count(), zeros_from(zero)}))
      return false;
  }
  if (lines.too_long())
    reader.damaged({Kind::too_long, lines.count() + 1,
                    "longer than " + std::to_string(reader.longest_line >> 20) + " MiB"});
  return !lines.too_long();
}

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
  experiments::RecordLines lines(reader.longest_line);
  std::vector<char> chunk(chunk_bytes);
  while (true) {
    const ssize_t count = ::read(opened.fd.get(), chunk.data(), chunk.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) refuse_unreadable(file, std::generic_category().message(errno));
    if (count == 0) break;
    lines.add({chunk.data(), static_cast<std::size_t>(count)});
    if (!take_lines(lines, reader)) return;
  }
  if (const std::size_t zero = lines.rest().find('\0'); zero != std::string_view::npos)
    reader.damaged({DamagedLine::Kind::zeros, lines.count() + 1, zeros_from(zero)});
}

}  // namespace trainyard::db
