#include <fstream>
#include <iostream>

#include <fmt/format.h>
#include <unistd.h>

#include "base/error.h"
#include "models/readers/archive.h"
#include "tools/trainyard/cli/download.h"
#include "tools/trainyard/cli/printable_output.h"
#include "tools/trainyard/commands/verb_data.h"

namespace trainyard::tools {
namespace {

namespace fs = std::filesystem;

constexpr double megabyte = 1e6;

// On a terminal, a line that is written over; nothing elsewhere.
class ProgressLine {
 public:
  explicit ProgressLine(std::string name) : name_(std::move(name)) {}
  ~ProgressLine() {
    if (shown_) write_as_it_is(STDERR_FILENO, "\r\x1b[K");
  }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  void show(std::uint64_t now, std::uint64_t whole) {
    const std::uint64_t percent = whole == 0 ? 0 : 100 * now / whole;
    if (!terminal_ || percent == percent_) return;
    percent_ = percent;
    shown_ = true;
    write_as_it_is(STDERR_FILENO,
                   fmt::format("\r{}: {:.1f} of {:.1f} MB, {} %", name_, static_cast<double>(now) / megabyte,
                               static_cast<double>(whole) / megabyte, percent));
  }

 private:
  std::string name_;
  bool terminal_ = isatty(STDERR_FILENO) == 1;
  bool shown_ = false;
  std::uint64_t percent_ = 101;
};

fs::path with_part(const fs::path& file) {
  return file.string() + ".part";
}

// The verified part of the file at `address`.
fs::path get_part(const models::KnownFile& file, const std::string& address, const fs::path& folder) {
  fs::create_directories(folder);
  const fs::path part = with_part(folder / file.name);
  if (!fs::exists(part) || fs::file_size(part) != file.bytes) {
    if (fs::exists(part) && fs::file_size(part) > file.bytes) fs::remove(part);
    ProgressLine line(file.name);
    download(address + '/' + file.name, part,
             [&](std::uint64_t now, std::uint64_t whole) { line.show(now, whole); });
  }
  const models::Digests found = models::digests_of_file(part);
  if (models::fits(file, found)) return part;
  fs::remove(part);
  throw UserError(
      fmt::format("{}/{} is not the published file: {} bytes, {}; should be {} bytes, {}", address, file.name,
                  found.bytes, file.sha256.empty() ? "MD5 " + found.md5 : "SHA-256 " + found.sha256,
                  file.bytes, models::digest_text(file)),
      "try again, or from another address with --from");
}

// The files of `archive` that stand in its folder `name`, written to directory/name.
void unpack(const fs::path& archive, const fs::path& directory, const std::string& name) {
  const fs::path part = with_part(directory / name);
  fs::remove_all(part);
  fs::create_directories(part);
  models::Archive files(archive);
  while (const auto entry = files.next()) {
    const fs::path path(*entry);
    if (path.parent_path().filename() != name) continue;
    std::ofstream out(part / path.filename(), std::ios::binary);
    out << files.content();
    if (!out.flush())
      throw UserError((part / path.filename()).string() + ": cannot be written; is the disk full?");
  }
  fs::remove_all(directory / name);
  fs::rename(part, directory / name);
}

bool is_there(const models::KnownFile& file, const fs::path& path) {
  return fs::exists(path) && models::fits(file, models::digests_of_file(path));
}

}  // namespace

void get_data(const models::KnownDataset& known, const fs::path& directory,
              const std::optional<std::string>& address, std::ostream& out) {
  const fs::path folder = known.folder.empty() ? directory : directory / known.folder;
  const std::string from = address.value_or(known.address);
  if (!known.unpacked.empty() && fs::exists(directory / known.unpacked)) {
    out << (directory / known.unpacked).string() << ": there already; `data verify` checks it\n";
    return;
  }
  for (const models::KnownFile& file : known.files) {
    if (known.unpacked.empty() && is_there(file, folder / file.name)) {
      out << (folder / file.name).string() << ": there already, as published\n";
      continue;
    }
    const fs::path part = get_part(file, from, folder);
    if (known.unpacked.empty()) {
      fs::rename(part, folder / file.name);
      out << (folder / file.name).string() << ": got, as published\n";
    } else {
      unpack(part, directory, known.unpacked);
      fs::remove(part);
      out << (directory / known.unpacked).string() << ": got, as published, and unpacked\n";
    }
  }
}

}  // namespace trainyard::tools
