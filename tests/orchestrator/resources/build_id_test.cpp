#include "orchestrator/resources/build_id.h"

#include <doctest/doctest.h>

#include "tests/support/scratch_folder.h"

using namespace trainyard;
using namespace trainyard::orchestrator;

TEST_CASE(
    "the build is that of the runner and its own libraries, wherever they are and whenever they were "
    "copied") {
  const tests::ScratchFolder folder;
  const auto runner = folder / "trainyard-runner";
  const auto library = folder / "libtorch_cpu.so";
  const std::string content(3 << 20, 'x');
  tests::write_text(runner, "a program");
  tests::write_text(library, content);
  const std::string build = build_id(runner, {library});
  CHECK(build.size() == 12);
  std::filesystem::create_directory(folder / "copy");
  std::filesystem::copy(library, folder / "copy/libtorch_cpu.so");
  CHECK(build_id(runner, {folder / "copy/libtorch_cpu.so"}) == build);
  CHECK(build_id(runner, {"/usr/lib/libc.so.6", library}) == build);
  CHECK(build_id(runner, {}) != build);
  for (const std::size_t place : {std::size_t{0}, content.size() - 1}) {
    std::string other = content;
    other[place] = 'y';
    tests::write_text(library, other);
    CHECK(build_id(runner, {library}) != build);
  }
  tests::write_text(library, content + "x");
  CHECK(build_id(runner, {library}) != build);
  tests::write_text(library, content);
  CHECK(build_id(runner, {library}) == build);
  tests::write_text(runner, "another program");
  CHECK(build_id(runner, {library}) != build);
}
