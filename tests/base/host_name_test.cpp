// The host name, also if it has bytes that a record must not contain.
#include <filesystem>
#include <string_view>

#include <doctest/doctest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/host.h"
#include "tests/support/scratch_folder.h"

namespace {

using namespace trainyard;

constexpr int not_allowed = 77;

// Give the host this name in a child process. 0: host_name() is `expected` there, 1: it is not.
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

TEST_CASE("a host name is one line of UTF-8, whatever bytes the system returns") {
  struct Named {
    std::string_view bytes, text;
  };
  for (const Named& each : {Named{"node-7", "node-7"}, Named{"café", "café"}, Named{"caf\xe9", "caf\\xe9"},
                            Named{"a\nb\x1b", "a\\nb\\u001b"}}) {
    CAPTURE(each.text);
    const int result = found_under(each.bytes, each.text);
    if (result == not_allowed) {
      MESSAGE("only on a host that this process may rename");
      return;
    }
    CHECK(result == 0);
  }
}

bool is_source(const std::filesystem::path& file) {
  return file.extension() == ".cpp" || file.extension() == ".h";
}

TEST_CASE("exactly one function asks the system for the host name") {
  const std::filesystem::path root = TRAINYARD_SOURCE_DIR;
  int askers = 0;
  for (const char* folder :
       {"base", "models", "experiments", "runner", "db", "orchestrator", "reports", "tools"}) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root / folder)) {
      if (!is_source(entry.path())) continue;
      if (tests::read_text(entry.path()).find("gethostname(") == std::string::npos) continue;
      ++askers;
      CHECK(entry.path() == root / "base" / "host.cpp");
    }
  }
  CHECK(askers == 1);
}

}  // namespace
