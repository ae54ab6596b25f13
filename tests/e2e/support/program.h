// Runs the real programs in a scratch folder of their own and looks at what they leave behind.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <sys/types.h>

namespace trainyard::e2e {

struct Output {
  int code = 0;  // exit code, or 128 + signal
  std::string out;
  std::string err;
};

// A folder below the system's temporary one, removed at the end.
class Scratch {
 public:
  Scratch();
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path write(const std::string& name, const std::string& text) const;

 private:
  std::filesystem::path path_;
};

// `trainyard` with these arguments, started in `folder`, in a process group of its own. Its streams go to
// files.
class Trainyard {
 public:
  Trainyard(const std::filesystem::path& folder, const std::vector<std::string>& arguments,
            const std::map<std::string, std::string>& environment = {},
            const std::string& program = TRAINYARD_PROGRAM);
  ~Trainyard();  // kills what still runs
  Trainyard(const Trainyard&) = delete;
  Trainyard& operator=(const Trainyard&) = delete;
  pid_t pid() const { return pid_; }
  void signal(int number) const;
  Output wait();

 private:
  pid_t pid_ = -1;
  std::filesystem::path out_, err_;
};

// Starts it and waits for its end.
Output run_trainyard(const std::filesystem::path& folder, const std::vector<std::string>& arguments,
                     const std::map<std::string, std::string>& environment = {},
                     const std::string& program = TRAINYARD_PROGRAM);

// Processes of any kind whose TRAINYARD_RUN lies below `folder`: ranks of a yard there.
std::vector<pid_t> ranks_below(const std::filesystem::path& folder);

// Calls `condition` every 20 ms until it holds; false where it has not come to hold for a minute.
template <class Condition>
bool comes_true(Condition condition);

// The ```python block of docs/record-protocol.md.
std::string documented_example();

// The folder of real data sets, or empty (and a message) where there is none.
std::string real_data();

}  // namespace trainyard::e2e

#include <chrono>
#include <thread>

#include "tests/support/patience.h"

template <class Condition>
bool trainyard::e2e::comes_true(Condition condition) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(tests::patience);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return true;
}
