// Terminal: escaped output, standard streams, signals that stop a sweep, and a screen that is redrawn.
//
// std::cout and std::cerr escape control characters of names, logs and other programs (`base/text.h`).
// Escape sequences of our own are written to the descriptor (`write_all`).
#pragma once

#include <array>
#include <atomic>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <ostream>
#include <streambuf>
#include <string>

namespace trainyard::tools {

// Stream buffer that escapes what is written to `stream` while this object lives.
class PrintableOutput : public std::streambuf {
 public:
  explicit PrintableOutput(std::ostream& stream);
  ~PrintableOutput() override;
  PrintableOutput(const PrintableOutput&) = delete;
  PrintableOutput& operator=(const PrintableOutput&) = delete;
  int error() const { return error_; }  // errno of the first failed write, or 0

 protected:
  std::streamsize xsputn(const char* text, std::streamsize size) override;
  int_type overflow(int_type character) override;
  int sync() override;

 private:
  bool pass(const std::string& text);
  bool noted(bool written);

  std::ostream& stream_;
  std::streambuf* buffer_;
  std::string begun_;  // the first bytes of an incomplete character
  int error_ = 0;
};

// Columns of the terminal at standard output (1) or standard error (2). 80 if unknown, 0 for a file or pipe.
std::size_t output_width(int descriptor = 1);

// Open /dev/null for each closed standard stream (`trainyard run FILE >&-`). Otherwise the next opened file,
// for example the journal, gets its number, and output is written into that file.
void open_closed_streams();

// Counter of SIGINT, SIGTERM and SIGHUP. After one signal a sweep ends its runs in order, after two at once.
// Only one object may live at a time.
class StopSignal {
 public:
  StopSignal();
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;
  const std::atomic<int>& count() const;

 private:
  std::array<struct sigaction, 4> before_{};
};

// Progress of something long: one line on standard error that is overwritten. Prints only to a terminal.
class ProgressLine {
 public:
  ProgressLine() = default;
  ~ProgressLine();  // removes the line
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  // The text of `about` and the percentage, if that has changed.
  void show(std::uint64_t now, std::uint64_t whole, const std::function<std::string()>& about);

 private:
  std::uint64_t percent_ = 101;  // that is shown; 101: none
};

// Shows a text: over the last one on a terminal, else after it. False if the reader is gone.
bool show_screen(int fd, const std::string& text);

// The first `lines` lines of a text. If it has more, the last line gives their number.
std::string first_lines(const std::string& text, std::size_t lines);

}  // namespace trainyard::tools
