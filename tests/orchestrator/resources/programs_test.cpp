#include "orchestrator/resources/programs.h"

#include <fstream>

#include <doctest/doctest.h>

#include "base/error.h"
#include "tests/orchestrator/support/sweep_fixture.h"
#include "tests/support/scratch_folder.h"

using namespace trainyard;
using namespace trainyard::orchestrator;

TEST_CASE("the circumstances have the host, the processor and the versions of the runner") {
  const auto machine = machine_circumstances({FAKE_RANK, ""});
  CHECK(machine.release == "0.1.0 Release");
  CHECK(machine.libtorch == "2.13.0");
  CHECK(machine.nccl.empty());
  CHECK_FALSE(machine.host.empty());
  CHECK_FALSE(machine.processor.empty());
}

TEST_CASE("a runner that does not print its version is a user error that names it") {
  CHECK_THROWS_WITH_AS(machine_circumstances({"/bin/false", ""}), doctest::Contains("/bin/false"), UserError);
  CHECK_THROWS_WITH_AS(machine_circumstances({"/bin/echo", ""}), doctest::Contains("no JSON object"),
                       UserError);
}

TEST_CASE("a program in a folder with spaces and quotes works") {
  const TemporaryFolder folder;
  const auto odd = folder.path / "it's a folder";
  std::filesystem::create_directory(odd);
  std::filesystem::create_symlink(FAKE_RANK, odd / "runner");
  CHECK(machine_circumstances({odd / "runner", ""}).libtorch == "2.13.0");
}

TEST_CASE("the error for missing programs has the folders in which they were looked for") {
  const auto here = std::filesystem::read_symlink("/proc/self/exe").parent_path().string();
  CHECK_THROWS_WITH_AS(find_programs(), doctest::Contains(here.c_str()), UserError);
  CHECK_THROWS_WITH_AS(find_programs(), doctest::Contains("libexec/trainyard"), UserError);
}

TEST_CASE("a runner that is killed while it prints its version is not an error of the user") {
  const TemporaryFolder folder;
  const auto killed = folder.path / "killed";
  std::ofstream(killed) << "#!/bin/sh\nkill -9 $$\n";
  std::filesystem::permissions(killed, std::filesystem::perms::owner_all);
  CHECK_THROWS_WITH_AS(runner_facts({killed, ""}), doctest::Contains("was killed by signal 9"),
                       ProgramKilled);
}

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
