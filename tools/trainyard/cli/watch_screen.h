// A text that is drawn over and over: in a terminal on a screen of its own, which is left with the cursor and
// the lines as they were before however the watching ends; else one after the other.
#pragma once

#include <cstddef>
#include <string>

namespace trainyard::tools {

class WatchScreen {
 public:
  explicit WatchScreen(int fd);
  ~WatchScreen();
  WatchScreen(const WatchScreen&) = delete;
  WatchScreen& operator=(const WatchScreen&) = delete;

  bool is_terminal() const { return terminal_; }
  bool show(const std::string& text);  // false where nobody reads any more
  void leave();                        // what is printed after this stays

 private:
  int fd_;
  bool terminal_, open_ = false;
};

// The first `lines` lines of a text; where it has more, the last one says how many.
std::string first_lines(const std::string& text, std::size_t lines);

}  // namespace trainyard::tools
