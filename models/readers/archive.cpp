#include "models/readers/archive.h"

#include <array>
#include <exception>

#include <archive.h>
#include <archive_entry.h>

#include "base/error.h"
#include "models/readers/data_file.h"

namespace trainyard::models {

struct Archive::State {
  explicit State(const std::filesystem::path& path) : file(path) {}

  // Through DataFile, so that a stream that is cut off or whose checksum is wrong is found and named there.
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

  // InternalError, UserError of the file, or where the archive itself is wrong.
  void check(int result) const {
    if (result == ARCHIVE_OK || result == ARCHIVE_WARN || result == ARCHIVE_EOF) return;
    if (error) std::rethrow_exception(error);
    const char* text = archive_error_string(reader.get());
    file.fail(file.offset(), std::string("the archive is cut off or damaged before here: ") +
                                 (text == nullptr ? "no reason given" : text));
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
    throw InternalError("libarchive reads no tar");
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
  while (state_->file.read(state_->piece) > 0) {  // to the checksum at the end
  }
  return std::nullopt;
}

std::string Archive::content() {
  std::string text;
  std::array<char, 65536> piece;  // NOLINT(cppcoreguidelines-pro-type-member-init)
  for (;;) {                      // in pieces: a false size in a header costs no memory
    const la_ssize_t got = archive_read_data(state_->reader.get(), piece.data(), piece.size());
    state_->check(got < 0 ? static_cast<int>(got) : ARCHIVE_OK);
    if (got <= 0) return text;
    text.append(piece.data(), static_cast<std::size_t>(got));
  }
}

}  // namespace trainyard::models
