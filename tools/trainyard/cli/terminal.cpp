#include "tools/trainyard/cli/terminal.h"

#include <algorithm>
#include <cerrno>
#include <new>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/text.h"

namespace trainyard::tools {

PrintableOutput::PrintableOutput(std::ostream& stream) : stream_(stream), buffer_(stream.rdbuf(this)) {}

PrintableOutput::~PrintableOutput() {
  pass(std::exchange(begun_, ""));
  buffer_->pubsync();
  stream_.rdbuf(buffer_);
}

// A stream would catch the exception, and the caller would never know that text is missing.
std::streamsize PrintableOutput::xsputn(const char* text, std::streamsize size) try {
  std::string whole = std::exchange(begun_, "");
  whole.append(text, static_cast<std::size_t>(size));
  begun_ = whole.substr(whole.size() - incomplete_end(whole));
  whole.resize(whole.size() - begun_.size());
  return pass(whole) ? size : 0;
} catch (const std::bad_alloc&) {
  errno = ENOMEM;
  noted(false);
  return 0;
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
  const std::string shown = printable(text);
  const auto size = static_cast<std::streamsize>(shown.size());
  return noted(buffer_->sputn(shown.data(), size) == size);
}

std::size_t output_width(int descriptor) {
  constexpr std::size_t usual = 80;
  if (::isatty(descriptor) == 0) return 0;
  winsize size{};
  return ::ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : usual;
}

bool write_as_it_is(int fd, const std::string& text) {
  return write_all(fd, text) == 0;
}

void open_closed_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(stream, F_GETFD) == -1)
      (void)::open("/dev/null", O_RDWR);  // gets the lowest free number: this one
}

namespace {

// A signal handler can reach static objects only.
std::atomic<int>& stop_count() {
  static std::atomic<int> count{0};
  static_assert(std::atomic<int>::is_always_lock_free);
  return count;
}

extern "C" void count_stop(int) {
  stop_count().fetch_add(1);
}

void replace_action(int number, void (*handler)(int), struct sigaction& before) {
  struct sigaction action {};
  action.sa_handler = handler;
  sigemptyset(&action.sa_mask);
  sigaction(number, &action, &before);
}

}  // namespace

StopSignal::StopSignal() {
  stop_count() = 0;  // initialises it before the first signal
  replace_action(SIGINT, count_stop, interrupt_);
  replace_action(SIGTERM, count_stop, terminate_);
  replace_action(SIGHUP, count_stop, hang_up_);
  replace_action(SIGPIPE, SIG_IGN, pipe_);  // a closed pipe must not end a sweep
}

StopSignal::~StopSignal() {
  sigaction(SIGINT, &interrupt_, nullptr);
  sigaction(SIGTERM, &terminate_, nullptr);
  sigaction(SIGHUP, &hang_up_, nullptr);
  sigaction(SIGPIPE, &pipe_, nullptr);
}

const std::atomic<int>& StopSignal::count() const {
  return stop_count();
}

ProgressLine::~ProgressLine() {
  if (percent_ <= 100) write_as_it_is(STDERR_FILENO, "\r\033[K");
}

void ProgressLine::show(std::uint64_t now, std::uint64_t whole, const std::function<std::string()>& about) {
  const std::uint64_t percent = whole == 0 ? 0 : 100 * now / whole;
  if (percent == percent_ || ::isatty(STDERR_FILENO) == 0) return;
  percent_ = percent;
  write_as_it_is(STDERR_FILENO, fmt::format("\r{}, {} %", about(), percent));
}

// Long lines are cut, as line wrapping is off. Each line erases the old text right of it, and the last line the rest,
// which avoids flicker. Nothing has to be restored.
bool show_screen(int fd, const std::string& text) {
  winsize size{};
  if (::isatty(fd) == 0) return write_as_it_is(fd, printable(text) + "\n");
  const bool known = ::ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_row > 0;
  std::string drawing = "\033[H\033[?7l";
  for (const char c : first_lines(printable(text), (known ? size.ws_row : 24) - 1))
    drawing += c == '\n' ? "\033[K\r\n" : std::string(1, c);
  return write_as_it_is(fd, drawing + "\033[J\033[?7h");
}

std::string first_lines(const std::string& text, std::size_t lines) {
  const auto all = static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
  if (all <= lines || lines == 0) return text;
  std::size_t end = 0;
  for (std::size_t line = 1; line < lines; ++line) end = text.find('\n', end) + 1;
  return text.substr(0, end) +
         fmt::format("… {} more lines: `trainyard status` prints all\n", all - lines + 1);
}

}  // namespace trainyard::tools
