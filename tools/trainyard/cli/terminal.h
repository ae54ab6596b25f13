// The terminal: escaped output, the standard streams, signals that stop a sweep, and a screen that is
// redrawn.
//
// What the verbs print: std::cout and std::cerr let no control character of a name, a log or a program's
// error reach the terminal (`base/text.h`). Our own ways of drawing write to the descriptor.
#pragma once

#include <atomic>
#include <csignal>
#include <cstddef>
#include <ostream>
#include <streambuf>
#include <string>

namespace trainyard::tools {

// Between a stream and its buffer, for as long as it lives.
class PrintableOutput : public std::streambuf {
 public:
  explicit PrintableOutput(std::ostream& stream);
  ~PrintableOutput() override;
  PrintableOutput(const PrintableOutput&) = delete;
  PrintableOutput& operator=(const PrintableOutput&) = delete;
  int error() const { return error_; }  // errno of the first write that failed; 0 where all was written

 protected:
  std::streamsize xsputn(const char* text, std::streamsize size) override;
  int_type overflow(int_type character) override;
  int sync() override;

 private:
  bool pass(const std::string& text);
  bool noted(bool written);

  std::ostream& stream_;
  std::streambuf* buffer_;
  std::string begun_;  // a character whose other bytes have not come
  int error_ = 0;
};

// Columns of the terminal that standard output (1) or standard error (2) is, 80 if they are unknown; 0 for a
// file or a pipe.
std::size_t output_width(int descriptor = 1);

// All of it as it stands; false where the descriptor takes no more.
bool write_as_it_is(int fd, const std::string& text);

// The three standard streams as every verb takes them to be: there.

// Puts /dev/null where a caller has closed one (`trainyard run FILE >&-`). Its number would be that of the
// next file that is opened, the lock of a yard or its journal, and what is printed would be written into
// that.
void open_closed_streams();

// Counts SIGINT, SIGTERM and SIGHUP for as long as it lives: one asks a sweep to end its runs in order, two
// at once. Only one may live at a time.

class StopSignal {
 public:
  StopSignal();
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;
  const std::atomic<int>& count() const;

 private:
  struct sigaction interrupt_ {};
  struct sigaction terminate_ {};
  struct sigaction hang_up_ {};
  struct sigaction pipe_ {};
};

// Takes note of SIGTSTP (Ctrl-Z) for as long as it lives, so that the terminal can be left in order before
// the program stops. Only one may live at a time.
class PauseSignal {
 public:
  PauseSignal();
  ~PauseSignal();
  PauseSignal(const PauseSignal&) = delete;
  PauseSignal& operator=(const PauseSignal&) = delete;
  bool came() const;
  void stop_now();  // as the signal would have done; returns when the program is continued

 private:
  struct sigaction before_ {};
};

// A text that is drawn over and over: in a terminal on a screen of its own, which is left with the cursor and
// the lines as they were before however the watching ends; else one after the other.

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
