#include "base/files.h"

#include <doctest/doctest.h>

#include "base/error.h"
#include "tests/support/scratch_folder.h"

namespace trainyard {
namespace {

namespace fs = std::filesystem;
using tests::ScratchFolder;

TEST_CASE("the names in a folder are sorted, and a folder that is missing gives the reason") {
  const ScratchFolder folder;
  for (const char* name : {"b", ".hidden", "a", "..."}) write_whole_file(folder.path() / name, "");
  fs::create_directory(folder.path() / "c");
  CHECK(names_in(folder.path()) == std::vector<std::string>{"...", ".hidden", "a", "b", "c"});
  std::error_code failed;
  CHECK(names_in(folder.path() / "missing", failed).empty());
  CHECK(failed == std::errc::no_such_file_or_directory);
  CHECK(names_in(folder.path() / "a", failed).empty());
  CHECK(failed == std::errc::not_a_directory);
  names_in(folder.path(), failed);
  CHECK_FALSE(failed);
  const std::string missing = folder.path() / "missing";
  CHECK_THROWS_WITH_AS(
      names_in(missing),
      (missing + ": cannot be read: No such file or directory; check its permissions").c_str(), UserError);
}

TEST_CASE("a link to a folder is not a folder") {
  const ScratchFolder folder;
  fs::create_directory(folder.path() / "real");
  fs::create_directory_symlink(folder.path() / "real", folder.path() / "link");
  CHECK(is_folder(folder.path() / "real"));
  CHECK_FALSE(is_folder(folder.path() / "link"));
  CHECK_FALSE(is_folder(folder.path() / "missing"));
}

TEST_CASE("a whole file is read, also if it does not state its size") {
  const ScratchFolder folder;
  const std::string text(10'000, 'x');
  write_whole_file(folder.path() / "file", text);
  CHECK(whole_file(folder.path() / "file") == text);
  CHECK(whole_file("/proc/self/status").find("\nPid:") != std::string::npos);
  CHECK(whole_file(folder.path() / "missing").empty());
}

}  // namespace
}  // namespace trainyard
