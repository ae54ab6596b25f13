// The host's name, on hosts that are named in ways that a record could not hold.
#include "base/host_name.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>

#include <doctest/doctest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

using namespace trainyard;

constexpr int not_allowed = 77;

// What a process of its own finds whose host has that name: 0 is `expected`, 1 is anything else.
int found_under(std::string_view name, std::string_view expected) {
  const pid_t child = ::fork();
  if (child == 0) {
    if (::unshare(CLONE_NEWUTS) != 0 || ::sethostname(name.data(), name.size()) != 0) ::_exit(not_allowed);
    ::_exit(host_name() == expected ? 0 : 1);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST_CASE("a host's name is text on one line, whatever bytes the host is named with") {
  struct Named {
    std::string_view bytes, text;
  };
  for (const Named& each : {Named{"node-7", "node-7"}, Named{"café", "café"}, Named{"caf\xe9", "caf\\xe9"},
                            Named{"a\nb\x1b", "a\\nb\\u001b"}}) {
    CAPTURE(each.text);
    const int result = found_under(each.bytes, each.text);
    if (result == not_allowed) {
      MESSAGE("only where a host may be named");
      return;
    }
    CHECK(result == 0);
  }
}

bool is_source(const std::filesystem::path& file) {
  return file.extension() == ".cpp" || file.extension() == ".h";
}

TEST_CASE(
    "one function asks the system for the host's name, so that no copy of it lacks what the other mends") {
  const std::filesystem::path root = TRAINYARD_SOURCE_DIR;
  int askers = 0;
  for (const char* folder :
       {"base", "models", "experiments", "runner", "db", "orchestrator", "reports", "tools"}) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root / folder)) {
      if (!is_source(entry.path())) continue;
      std::ifstream file(entry.path());
      const std::string text{std::istreambuf_iterator<char>(file), {}};
      if (text.find("gethostname(") == std::string::npos) continue;
      ++askers;
      CHECK(entry.path() == root / "base" / "host_name.cpp");
    }
  }
  CHECK(askers == 1);
}

}  // namespace
