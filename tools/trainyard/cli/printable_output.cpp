#include "tools/trainyard/cli/printable_output.h"

#include <cerrno>
#include <utility>

#include <unistd.h>

#include "base/printable.h"

namespace trainyard::tools {

PrintableOutput::PrintableOutput(std::ostream& stream) : stream_(stream), buffer_(stream.rdbuf(this)) {}

PrintableOutput::~PrintableOutput() {
  pass(std::exchange(begun_, ""));
  buffer_->pubsync();
  stream_.rdbuf(buffer_);
}

std::streamsize PrintableOutput::xsputn(const char* text, std::streamsize size) {
  std::string whole = std::exchange(begun_, "");
  whole.append(text, static_cast<std::size_t>(size));
  begun_ = whole.substr(whole.size() - models::incomplete_end(whole));
  whole.resize(whole.size() - begun_.size());
  return pass(whole) ? size : 0;
}

PrintableOutput::int_type PrintableOutput::overflow(int_type character) {
  if (traits_type::eq_int_type(character, traits_type::eof())) return traits_type::not_eof(character);
  const char c = traits_type::to_char_type(character);
  return xsputn(&c, 1) == 1 ? character : traits_type::eof();
}

int PrintableOutput::sync() {
  return noted(buffer_->pubsync() == 0) ? 0 : -1;
}

bool PrintableOutput::noted(bool written) {
  if (!written && error_ == 0) error_ = errno != 0 ? errno : EIO;
  return written;
}

bool PrintableOutput::pass(const std::string& text) {
  const std::string shown = models::printable(text);
  const auto size = static_cast<std::streamsize>(shown.size());
  return noted(buffer_->sputn(shown.data(), size) == size);
}

bool write_as_it_is(int fd, const std::string& text) {
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t written = ::write(fd, text.data() + done, text.size() - done);
    if (written < 0 && errno != EINTR) return false;
    if (written > 0) done += static_cast<std::size_t>(written);
  }
  return true;
}

}  // namespace trainyard::tools
