#include <cstdlib>
#include <fstream>

#include <doctest/doctest.h>

#include "base/host.h"
#include "tests/support/scratch_folder.h"

namespace fs = std::filesystem;
using namespace trainyard;
using trainyard::tests::ScratchFolder;

namespace {

void write_program(const fs::path& file) {
  std::ofstream(file) << "#!/bin/sh\n";
  fs::permissions(file, fs::perms::owner_all);
}

// Sets PATH and restores it at the end.
class Path {
 public:
  explicit Path(const std::string& folders) { ::setenv("PATH", folders.c_str(), 1); }
  ~Path() { ::setenv("PATH", before_.c_str(), 1); }
  Path(const Path&) = delete;
  Path& operator=(const Path&) = delete;

 private:
  std::string before_ = std::getenv("PATH");
};

}  // namespace

TEST_CASE("a name without a slash is looked up in the folders of PATH, in their order") {
  const ScratchFolder folder;
  for (const char* name : {"first", "second"}) fs::create_directory(folder / name);
  write_program(folder / "second" / "train");
  const Path path((folder / "first").string() + ":" + (folder / "second").string());
  CHECK(program_path("train", "/") == folder / "second" / "train");
  write_program(folder / "first" / "train");
  CHECK(program_path("train", "/") == folder / "first" / "train");
  CHECK_FALSE(program_path("no-such-program", "/"));
}

TEST_CASE("an empty or relative folder of PATH is relative to the folder in which the program starts") {
  const ScratchFolder folder;
  fs::create_directory(folder / "bin");
  write_program(folder / "train");
  write_program(folder / "bin" / "other");
  const Path path("/nowhere::bin");
  CHECK(program_path("train", folder.path()));
  CHECK(program_path("other", folder.path()) == folder / "bin" / "other");
  CHECK_FALSE(program_path("train", folder / "bin"));
  const Path last("/nowhere:");
  CHECK(program_path("train", folder.path()));
}

TEST_CASE("a name with a slash is a path from the folder, and only an executable file is a program") {
  const ScratchFolder folder;
  write_program(folder / "train");
  std::ofstream(folder / "notes") << "text\n";
  fs::create_directory(folder / "folder");
  CHECK(program_path("./train", folder.path()));
  CHECK(program_path((folder / "train").string(), "/") == folder / "train");
  CHECK_FALSE(program_path("./notes", folder.path()));
  CHECK_FALSE(program_path("./folder", folder.path()));
}
