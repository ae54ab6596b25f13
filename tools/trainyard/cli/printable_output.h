// What the verbs print: std::cout and std::cerr let no control character of a name, a log or a program's
// error reach the terminal (`base/printable.h`). Our own ways of drawing write to the descriptor.
#pragma once

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

// All of it as it stands; false where the descriptor takes no more.
bool write_as_it_is(int fd, const std::string& text);

}  // namespace trainyard::tools
