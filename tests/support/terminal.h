// A program in a pseudo-terminal of 24 lines and 80 columns. Its output is kept.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <sys/types.h>

namespace trainyard::e2e {

// False if /dev/pts is not mounted. Prints that the test is skipped.
bool has_terminals();

class Terminal {
 public:
  Terminal(const std::filesystem::path& folder, const std::vector<std::string>& arguments,
           const std::string& program = TRAINYARD_PROGRAM);
  ~Terminal();  // kills the program if it still runs
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  bool shows(const std::string& text);       // false after a minute
  void type(const std::string& keys) const;  // "\x03" is Ctrl-C
  int wait();                                // exit code, or 128 + signal, or −1 after a minute
  bool read();                               // reads available output, or returns false at its end
  const std::string& output() const { return output_; }

 private:
  pid_t pid_ = -1;
  int fd_ = -1;
  std::string output_;
};

}  // namespace trainyard::e2e
