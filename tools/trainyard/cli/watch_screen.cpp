#include "tools/trainyard/cli/watch_screen.h"

#include <algorithm>

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/printable.h"
#include "tools/trainyard/cli/printable_output.h"

namespace trainyard::tools {
namespace {

// Another screen, no cursor, long lines cut off.
constexpr const char* enter_text = "\033[?1049h\033[?25l\033[?7l";
constexpr const char* leave_text = "\033[?7h\033[?25h\033[?1049l";

std::size_t rows_of(int fd) {
  winsize size{};
  return ::ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 ? size.ws_row : 24;
}

// Each line wipes what stood right of it, the last one what stood below: nothing flickers.
std::string redrawn(const std::string& text) {
  std::string drawing = "\033[H";
  for (const char c : text) drawing += c == '\n' ? "\033[K\r\n" : std::string(1, c);
  return drawing + "\033[J";
}

}  // namespace

WatchScreen::WatchScreen(int fd) : fd_(fd), terminal_(::isatty(fd) != 0) {}

WatchScreen::~WatchScreen() {
  leave();
}

bool WatchScreen::show(const std::string& text) {
  if (!terminal_) return write_as_it_is(fd_, models::printable(text) + "\n");
  const bool is_new = !open_;
  open_ = true;
  const std::string lines = first_lines(models::printable(text), rows_of(fd_) - 1);
  return write_as_it_is(fd_, (is_new ? enter_text : "") + redrawn(lines));
}

void WatchScreen::leave() {
  if (open_) write_as_it_is(fd_, leave_text);
  open_ = false;
}

std::string first_lines(const std::string& text, std::size_t lines) {
  const auto all = static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
  if (all <= lines || lines == 0) return text;
  std::size_t end = 0;
  for (std::size_t line = 1; line < lines; ++line) end = text.find('\n', end) + 1;
  return text.substr(0, end) +
         fmt::format("… {} lines more: `trainyard status` prints all\n", all - lines + 1);
}

}  // namespace trainyard::tools
