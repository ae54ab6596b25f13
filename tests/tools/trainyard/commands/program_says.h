// Runs the real program in a shell, and returns its output and exit code.
#pragma once

#include <array>
#include <cstdio>
#include <string>

#include <doctest/doctest.h>
#include <sys/wait.h>

#include "tests/support/contains.h"

namespace trainyard::tests {

struct Outcome {
  int code = 0;
  std::string out;
};

inline Outcome shell_says(const std::string& command) {
  Outcome outcome;
  FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  REQUIRE(pipe != nullptr);
  std::array<char, 4096> buffer{};
  while (const auto count = fread(buffer.data(), 1, buffer.size(), pipe))
    outcome.out.append(buffer.data(), count);
  const int status = pclose(pipe);
  outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return outcome;
}

inline Outcome trainyard_says(const std::string& arguments) {
  return shell_says(std::string(TRAINYARD_PROGRAM) + " " + arguments);
}

// Checks the exit code, and that the output has `text`. Returns both for further checks.
inline Outcome checked(Outcome outcome, int code, const std::string& text) {
  CHECK_MESSAGE(outcome.code == code, text << ": " << outcome.out);
  CHECK_MESSAGE(contains(outcome.out, text), outcome.out);
  return outcome;
}

}  // namespace trainyard::tests
