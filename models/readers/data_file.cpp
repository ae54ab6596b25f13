#include "models/readers/data_file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include <zlib.h>

#include "base/counted.h"
#include "base/error.h"

namespace trainyard::models {

namespace {

constexpr unsigned buffer_bytes = 1U << 18U;
constexpr std::uint64_t piece_bytes = 1U << 20U;

}  // namespace

// zlib reads a file that is not gzip as it is.
struct DataFile::Stream {
  std::unique_ptr<gzFile_s, decltype(&gzclose_r)> file{nullptr, &gzclose_r};
};

DataFile::DataFile(const std::filesystem::path& path, Sha256* hash, std::string advice)
    : path_(path), hash_(hash), advice_(std::move(advice)), stream_(std::make_unique<Stream>()) {
  stream_->file.reset(gzopen(path.c_str(), "rb"));
  if (!stream_->file) throw UserError(path.string() + ": cannot be opened: " + std::strerror(errno));
  gzbuffer(stream_->file.get(), buffer_bytes);
}

DataFile::~DataFile() = default;

std::size_t DataFile::read(std::span<std::uint8_t> bytes) {
  std::size_t filled = 0;
  while (filled < bytes.size()) {
    const auto wanted = static_cast<unsigned>(std::min<std::uint64_t>(bytes.size() - filled, piece_bytes));
    const int got = gzread(stream_->file.get(), bytes.data() + filled, wanted);
    if (got > 0) {
      filled += static_cast<unsigned>(got);
      offset_ += static_cast<unsigned>(got);
      continue;
    }
    int error = Z_OK;
    const char* text = gzerror(stream_->file.get(), &error);
    if (error == Z_ERRNO) throw UserError(path_.string() + ": cannot be read: " + std::strerror(errno));
    if (error == Z_BUF_ERROR) fail(offset_, "the gzip stream is cut off here");
    if (error != Z_OK) fail(offset_, std::string("the gzip stream is corrupt: ") + text);
    break;
  }
  if (hash_ != nullptr) hash_->update(std::span<const unsigned char>(bytes.first(filled)));
  return filled;
}

void DataFile::read_exactly(std::uint64_t count, const std::string& whole, const Piece& use) {
  std::vector<std::uint8_t> piece(std::min(count, piece_bytes));
  const std::uint64_t end = offset_ + count;
  while (offset_ < end) {
    const auto part = std::span(piece).first(std::min<std::uint64_t>(piece.size(), end - offset_));
    const std::size_t got = read(part);
    if (got < part.size()) {
      const std::uint64_t missing = end - offset_;
      fail(offset_, "the file ends here, " + counted(missing, "byte") + " short of " + whole);
    }
    use(part);
  }
}

void DataFile::expect_end(const std::string& whole) {
  std::uint8_t byte = 0;
  if (read(std::span(&byte, 1)) != 0) fail(offset_ - 1, "more bytes follow " + whole);
}

void DataFile::fail(std::uint64_t byte, const std::string& what) const {
  const std::string unpacked = gzdirect(stream_->file.get()) == 0 ? " (unpacked)" : "";
  throw UserError(path_.string() + ": byte " + std::to_string(byte) + unpacked + ": " + what, advice_);
}

}  // namespace trainyard::models
