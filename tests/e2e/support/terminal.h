// `trainyard`, or another program, in a terminal of its own: a pseudo-terminal of 24 lines of 80 columns,
// whose output is kept.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <sys/types.h>

namespace trainyard::e2e {

// Where nothing is mounted on /dev/pts there are none; says that a test is skipped then.
bool has_terminals();

class Terminal {
 public:
  Terminal(const std::filesystem::path& folder, const std::vector<std::string>& arguments,
           const std::string& program = TRAINYARD_PROGRAM);
  ~Terminal();  // kills what still runs
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  bool shows(const std::string& text);       // false where it has not come for a minute
  void type(const std::string& keys) const;  // "\x03" is Ctrl-C
  int wait();   // exit code, or 128 + signal; −1 where it still runs after a minute
  bool read();  // what comes in a moment; false where nothing can come any more
  const std::string& output() const { return output_; }

 private:
  pid_t pid_ = -1;
  int fd_ = -1;
  std::string output_;
};

}  // namespace trainyard::e2e
