#include <cstdlib>
#include <iterator>

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "models/datasets/text_data.h"
#include "tests/support/data_folder.h"

using namespace trainyard::models;
using namespace trainyard::tests;

namespace fs = std::filesystem;

namespace {

std::ptrdiff_t files_in(const fs::path& folder) {
  return std::distance(fs::directory_iterator(folder), {});
}

// Run `action` in a child process; it exits with 0 if `action` returns true.
pid_t in_child(const std::function<bool()>& action) {
  const pid_t child = fork();
  if (child == 0) _exit(action() ? 0 : 1);
  return child;
}

bool succeeded(pid_t child) {
  int status = 0;
  return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace

TEST_CASE("an entry of the cache can be read in this process and in the next") {
  const DataFolder folder;
  const ContentCache cache(folder.path() / "a" / "b");
  CHECK_FALSE(cache.get("x"));
  const std::string content("words\n\0with a zero", 18);
  cache.put("x", content);
  CHECK(ContentCache(folder.path() / "a" / "b").get("x") == content);
  CHECK_FALSE(cache.get("y"));
  CHECK(files_in(folder.path() / "a" / "b") == 1);
}

TEST_CASE("a truncated or changed entry counts as missing, and can be written again") {
  const DataFolder folder;
  const ContentCache cache(folder.path());
  cache.put("x", "some content");
  fs::resize_file(folder.path() / "x", fs::file_size(folder.path() / "x") - 1);
  CHECK_FALSE(cache.get("x"));
  fs::resize_file(folder.path() / "x", 10);
  CHECK_FALSE(cache.get("x"));
  cache.put("x", "some content");
  CHECK(cache.get("x") == "some content");
}

TEST_CASE("a cache in a folder that cannot be written stays empty, without an error") {
  const DataFolder folder;
  folder.write("file", "not a folder");
  const ContentCache cache(folder.path() / "file" / "below");
  cache.put("x", "content");
  CHECK_FALSE(cache.get("x"));
  const ContentCache none("");
  none.put("x", "content");
  CHECK_FALSE(none.get("x"));
}

TEST_CASE("processes that write and read an entry at the same time never see a part of it") {
  const DataFolder folder;
  const ContentCache cache(folder.path());
  const std::string content(300'000, 'w');
  const auto work = [&] {
    for (int turn = 0; turn < 60; ++turn) {
      cache.put("x", content);
      if (cache.get("x") != content) return false;
    }
    return true;
  };
  const pid_t first = in_child(work);
  const pid_t second = in_child(work);
  CHECK(succeeded(first));
  CHECK(succeeded(second));
  CHECK(files_in(folder.path()) == 1);
}

TEST_CASE("the cache of the user is in XDG_CACHE_HOME") {
  const char* before = std::getenv("XDG_CACHE_HOME");
  const std::string kept = before == nullptr ? "" : before;
  const DataFolder folder;
  setenv("XDG_CACHE_HOME", folder.path().c_str(), 1);
  user_cache().put("x", "content");
  CHECK(fs::exists(folder.path() / "trainyard" / "x"));
  before == nullptr ? unsetenv("XDG_CACHE_HOME") : setenv("XDG_CACHE_HOME", kept.c_str(), 1);
}
