#include "models/readers/data_file.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <exception>
#include <new>
#include <vector>

#include <archive.h>
#include <archive_entry.h>
#include <fmt/format.h>
#include <zlib.h>

#include "base/error.h"
#include "base/plain_file.h"
#include "base/text.h"

namespace trainyard::models {

namespace {

constexpr unsigned buffer_bytes = 1U << 18U;
constexpr std::uint64_t piece_bytes = 1U << 20U;

}  // namespace

DataFile::DataFile(const std::filesystem::path& path, Sha256* hash, std::string advice)
    : path_(path), hash_(hash), advice_(std::move(advice)), stream_(nullptr, &gzclose_r) {
  FileDescriptor fd = open_plain(path).or_refuse(path);
  stream_.reset(gzdopen(fd.get(), "rb"));
  if (!stream_) throw std::bad_alloc();  // the only reason for a descriptor that can be read
  fd.release();                          // gzclose_r closes it
  gzbuffer(stream_.get(), buffer_bytes);
}

std::size_t DataFile::read(std::span<std::uint8_t> bytes) {
  std::size_t filled = 0;
  while (filled < bytes.size()) {
    const auto wanted = static_cast<unsigned>(std::min<std::uint64_t>(bytes.size() - filled, piece_bytes));
    const int got = gzread(stream_.get(), bytes.data() + filled, wanted);
    if (got > 0) {
      filled += static_cast<unsigned>(got);
      offset_ += static_cast<unsigned>(got);
      refuse_bomb(offset_);
      continue;
    }
    int error = Z_OK;
    const char* text = gzerror(stream_.get(), &error);
    if (error == Z_ERRNO)
      throw UserError(fmt::format("{}: cannot be read: {}", path_.string(), std::strerror(errno)));
    if (error == Z_BUF_ERROR) fail(offset_, "the gzip stream is truncated here");
    if (error != Z_OK) fail(offset_, fmt::format("the gzip stream is damaged: {}", text));
    break;
  }
  if (hash_ != nullptr) hash_->update(std::span<const unsigned char>(bytes.first(filled)));
  return filled;
}

// UserError if the file is in gzip and `bytes` of it are too many.
void DataFile::refuse_bomb(std::uint64_t bytes) const {
  if (bytes > most_unpacked && gzdirect(stream_.get()) == 0)
    fail(offset_, fmt::format("the file unpacks to more than {} bytes, which is the limit", most_unpacked));
}

void DataFile::read_exactly(std::uint64_t count, const std::string& whole, const Piece& use) {
  refuse_bomb(count);
  std::vector<std::uint8_t> piece(std::min(count, piece_bytes));
  const std::uint64_t end = offset_ + count;
  while (offset_ < end) {
    const auto part = std::span(piece).first(std::min<std::uint64_t>(piece.size(), end - offset_));
    const std::size_t got = read(part);
    if (got < part.size()) {
      fail(offset_, fmt::format("the file ends here, {} short of {}", counted(end - offset_, "byte"), whole));
    }
    use(part);
  }
}

void DataFile::expect_end(const std::string& whole) {
  std::uint8_t byte = 0;
  if (read(std::span(&byte, 1)) != 0) fail(offset_ - 1, "more bytes follow " + whole);
}

void DataFile::fail(std::uint64_t byte, const std::string& what) const {
  const char* unpacked = gzdirect(stream_.get()) == 0 ? " (unpacked)" : "";
  throw UserError(fmt::format("{}: byte {}{}: {}", path_.string(), byte, unpacked, what), advice_);
}

std::string read_text_file(const std::filesystem::path& path, const std::string& advice) {
  DataFile file(path, nullptr, advice);
  std::string text;
  std::array<std::uint8_t, 65536> piece;  // NOLINT(cppcoreguidelines-pro-type-member-init)
  for (std::size_t got = piece.size(); got == piece.size();) {
    got = file.read(piece);
    text.append(reinterpret_cast<const char*>(piece.data()), got);
    if (text.size() > most_text)
      file.fail(most_text, fmt::format("the text has more than {} bytes, which is the limit", most_text));
  }
  if (const auto byte = first_not_utf8(text)) file.fail(*byte, "this is not UTF-8");
  return text;
}

struct Archive::State {
  explicit State(const std::filesystem::path& path) : file(path) {}

  // Reads by DataFile, which reports a truncated stream and a wrong checksum.
  static la_ssize_t read(archive* /*reader*/, void* client, const void** bytes) {
    auto& state = *static_cast<State*>(client);
    *bytes = state.piece.data();
    try {
      return static_cast<la_ssize_t>(state.file.read(state.piece));
    } catch (...) {
      state.error = std::current_exception();
      return ARCHIVE_FATAL;
    }
  }

  // Throw for a failed call of libarchive: the error of DataFile, or a UserError about the archive.
  void check(int result) const {
    if (result == ARCHIVE_OK || result == ARCHIVE_WARN || result == ARCHIVE_EOF) return;
    if (error) std::rethrow_exception(error);
    const char* text = archive_error_string(reader.get());
    file.fail(file.offset(), fmt::format("the archive is truncated or damaged before this byte: {}",
                                         text == nullptr ? "libarchive gives no reason" : text));
  }

  DataFile file;
  std::array<std::uint8_t, 65536> piece{};
  std::exception_ptr error;
  std::unique_ptr<archive, decltype(&archive_read_free)> reader{archive_read_new(), &archive_read_free};
  archive_entry* entry = nullptr;
};

Archive::Archive(const std::filesystem::path& path) : state_(std::make_unique<State>(path)) {
  archive* reader = state_->reader.get();
  if (reader == nullptr || archive_read_support_format_tar(reader) != ARCHIVE_OK)
    throw InternalError("libarchive cannot read tar archives");
  state_->check(archive_read_open(reader, state_.get(), nullptr, &State::read, nullptr));
}

Archive::~Archive() = default;

std::optional<std::string> Archive::next() {
  for (;;) {
    const int result = archive_read_next_header(state_->reader.get(), &state_->entry);
    state_->check(result);
    if (result == ARCHIVE_EOF) break;
    const char* name = archive_entry_pathname(state_->entry);
    if (archive_entry_filetype(state_->entry) == AE_IFREG && name != nullptr) return name;
  }
  while (state_->file.read(state_->piece) > 0) {  // read to the end, so that zlib verifies the checksum
  }
  return std::nullopt;
}

std::string Archive::content() {
  std::string text;
  std::array<char, 65536> piece;  // NOLINT(cppcoreguidelines-pro-type-member-init)
  for (;;) {                      // in pieces: a wrong size in a header costs no memory
    const la_ssize_t got = archive_read_data(state_->reader.get(), piece.data(), piece.size());
    state_->check(got < 0 ? static_cast<int>(got) : ARCHIVE_OK);
    if (got <= 0) return text;
    text.append(piece.data(), static_cast<std::size_t>(got));
    if (text.size() > most_text)
      state_->file.fail(state_->file.offset(),
                        fmt::format("{} in the archive has more than {} bytes, which is the limit",
                                    archive_entry_pathname(state_->entry), most_text));
  }
}

}  // namespace trainyard::models
