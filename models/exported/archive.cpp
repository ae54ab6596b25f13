#include "models/exported/archive.h"

#include <set>

#include <archive.h>
#include <archive_entry.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/plain_file.h"
#include "base/text.h"
#include "models/exported/fault.h"

namespace trainyard::models::pt2 {

namespace {

constexpr std::size_t piece_bytes = 1U << 20U;

class ZipReader {
 public:
  explicit ZipReader(const std::filesystem::path& path) : fd_(open_plain(path).or_refuse(path)) {
    struct stat found {};
    if (::fstat(fd_.get(), &found) != 0) throw Fault("its size cannot be read", "check the disk");
    size_ = static_cast<std::uint64_t>(found.st_size);
    if (size_ > most_file_bytes)
      throw Fault(fmt::format("it has {} bytes, but at most {} are allowed", size_, most_file_bytes),
                  "export a smaller network");
    // by the central directory: local headers have no sizes
    if (!reader_ || archive_read_support_format_zip_seekable(reader_.get()) != ARCHIVE_OK)
      throw InternalError("libarchive cannot read zip archives");
    check(archive_read_open_fd(reader_.get(), fd_.get(), piece_bytes));
  }

  // False after the last entry.
  bool next() {
    const int result = archive_read_next_header(reader_.get(), &entry_);
    if (result == ARCHIVE_EOF) return false;
    check(result);
    return true;
  }

  std::string name() const {
    const char* name = archive_entry_pathname_utf8(entry_);
    if (name == nullptr) name = archive_entry_pathname(entry_);
    return name == nullptr ? "" : name;
  }
  bool is_folder() const { return archive_entry_filetype(entry_) == AE_IFDIR; }
  bool is_file() const {
    return archive_entry_filetype(entry_) == AE_IFREG && archive_entry_size_is_set(entry_) != 0;
  }
  std::uint64_t entry_size() const { return static_cast<std::uint64_t>(archive_entry_size(entry_)); }
  std::uint64_t file_size() const { return size_; }

  // Reads the entry to its end. Returns its content if `keep`.
  std::string content(bool keep) {
    std::string text;
    if (keep) text.reserve(entry_size());
    std::uint64_t done = 0;
    for (;;) {
      const la_ssize_t got = archive_read_data(reader_.get(), piece_.data(), piece_.size());
      if (got == 0) break;
      if (got < 0) refuse();
      done += static_cast<std::uint64_t>(got);
      if (done > entry_size()) throw Fault(in_quotes(name()) + " is longer than the archive says");
      if (keep) text.append(piece_.data(), static_cast<std::size_t>(got));
    }
    if (done != entry_size()) throw Fault(in_quotes(name()) + " is shorter than the archive says");
    return text;
  }

 private:
  void check(int result) const {
    // a warning: the name of the folder cannot be converted to the locale of this process
    if (result != ARCHIVE_OK && result != ARCHIVE_WARN) refuse();
  }
  [[noreturn]] void refuse() const {
    const char* text = archive_error_string(reader_.get());
    throw Fault("it is not a zip archive, or it is damaged: " +
                printable_line(text == nullptr ? "libarchive gives no reason" : text));
  }

  FileDescriptor fd_;
  std::uint64_t size_ = 0;
  std::unique_ptr<archive, decltype(&archive_read_free)> reader_{archive_read_new(), &archive_read_free};
  archive_entry* entry_ = nullptr;
  std::string piece_ = std::string(piece_bytes, '\0');
};

// "models/model.json" for "mlp/models/model.json". `root` is the folder of the first entry.
std::string name_below(const std::string& name, std::string& root) {
  const std::size_t slash = name.find('/');
  if (slash == 0 || slash == std::string::npos || slash + 1 == name.size())
    throw Fault("the entry " + in_quotes(name) + " is not in a folder");
  if (("/" + name + "/").find("/../") != std::string::npos)
    throw Fault("the name of the entry " + in_quotes(name) + " is not safe");
  if (root.empty()) root = name.substr(0, slash);
  if (root != name.substr(0, slash))
    throw Fault("the entries " + in_quotes(root) + " and " + in_quotes(name) + " are not in one folder");
  return name.substr(slash + 1);
}

}  // namespace

Entries read_entries(const std::filesystem::path& path,
                     const std::function<bool(const std::string&)>& wanted) {
  ZipReader zip(path);
  Entries entries;
  std::set<std::string> names;
  std::string root;
  std::uint64_t left = zip.file_size();
  while (zip.next()) {
    if (zip.is_folder()) continue;
    const std::string name = name_below(zip.name(), root);
    if (!zip.is_file()) throw Fault("the entry " + in_quotes(name) + " is not a file with a size");
    if (!names.insert(name).second) throw Fault("the entry " + in_quotes(name) + " is there twice");
    if (names.size() > most_entries)
      throw Fault(fmt::format("the archive has more than {} entries, which is the limit", most_entries));
    if (zip.entry_size() > left)
      throw Fault(
          "its entries unpack to more bytes than the file has, but torch.export.save does not compress");
    left -= zip.entry_size();
    const bool keep = wanted(name);
    std::string content = zip.content(keep);
    if (keep) entries.emplace(name, std::make_shared<const std::string>(std::move(content)));
  }
  return entries;
}

}  // namespace trainyard::models::pt2
