// A program that a test starts and watches.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

namespace trainyard::runner::testing {

class Child {
 public:
  // Starts `argv` with `environment` added to this process's own; its output goes to pipes.
  Child(const std::vector<std::string>& argv, const std::map<std::string, std::string>& environment = {});
  ~Child();  // kills it
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  pid_t pid() const { return pid_; }
  void kill(int signal);
  std::string read_line();  // of its standard output
  std::string read_all();   // of standard output and error; once it has ended
  // Its exit code, or minus the signal that ended it; nothing where it still runs after `limit`.
  std::optional<int> wait(std::chrono::milliseconds limit);

 private:
  pid_t pid_ = -1;
  int out_ = -1;
  std::optional<int> code_;
};

}  // namespace trainyard::runner::testing
