// A child process of a test.
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
  // Starts `argv`, with `environment` added to that of this process. Its output goes to a pipe.
  Child(const std::vector<std::string>& argv, const std::map<std::string, std::string>& environment = {});
  ~Child();  // kills the process
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  pid_t pid() const { return pid_; }
  void kill(int signal);
  std::string read_line();  // of its output
  std::string read_all();   // all output until its end
  // The exit code, or minus the signal that ended it. Empty if the process still runs after `limit`.
  std::optional<int> wait(std::chrono::milliseconds limit);

 private:
  pid_t pid_ = -1;
  int out_ = -1;
  std::optional<int> code_;
};

}  // namespace trainyard::runner::testing
