// Runs the real programs in scratch folders and collects their output.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <sys/types.h>

#include "tests/support/contains.h"
#include "tests/support/scratch_folder.h"

namespace trainyard::e2e {

struct Output {
  int code = 0;  // exit code, or 128 + signal
  std::string out;
  std::string err;
};

// A `trainyard` process, started in `folder` in its own process group. Its output goes to stdout.txt and
// stderr.txt.
class Trainyard {
 public:
  Trainyard(const std::filesystem::path& folder, const std::vector<std::string>& arguments,
            const std::map<std::string, std::string>& environment = {},
            const std::string& program = TRAINYARD_PROGRAM);
  ~Trainyard();  // kills the process if it still runs
  Trainyard(const Trainyard&) = delete;
  Trainyard& operator=(const Trainyard&) = delete;
  pid_t pid() const { return pid_; }
  void signal(int number) const;
  Output wait();

 private:
  pid_t pid_ = -1;
  std::filesystem::path out_, err_;
};

// Runs the program to its end.
Output run_trainyard(const std::filesystem::path& folder, const std::vector<std::string>& arguments,
                     const std::map<std::string, std::string>& environment = {},
                     const std::string& program = TRAINYARD_PROGRAM);

// A temporary folder, in which `at` runs the program to its end.
class Scratch : public tests::ScratchFolder {
 public:
  Output at(const std::vector<std::string>& arguments,
            const std::map<std::string, std::string>& environment = {},
            const std::string& program = TRAINYARD_PROGRAM) const {
    return run_trainyard(path(), arguments, environment, program);
  }
};

// Checks the exit code, and that standard error or output has `text`. Returns the output for further checks.
inline Output checked_error(Output output, int code, const std::string& text) {
  CHECK(output.code == code);
  CHECK_MESSAGE(contains(output.err, text), (output.out + output.err));
  return output;
}
inline Output checked_output(Output output, int code, const std::string& text) {
  CHECK(output.code == code);
  CHECK_MESSAGE(contains(output.out, text), (output.out + output.err));
  return output;
}

// Gives a database another schema version.
void make_older(const std::filesystem::path& database, int schema);

// Processes whose TRAINYARD_RUN is below `folder`, which are the ranks of a yard there.
std::vector<pid_t> ranks_below(const std::filesystem::path& folder);

// Calls `condition` every 20 ms until it is true. Returns false after one minute.
template <class Condition>
bool comes_true(Condition condition);

// The ```python block of docs/record-protocol.md.
std::string documented_example();

// The folder of real data sets, or empty if there is none.
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
