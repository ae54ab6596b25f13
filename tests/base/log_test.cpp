#include "base/log.h"

#include <filesystem>
#include <regex>
#include <sstream>

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/error.h"
#include "tests/support/file_size_limit.h"
#include "tests/support/scratch_folder.h"

using namespace trainyard;
using namespace trainyard::tests;
namespace fs = std::filesystem;

namespace {

// Sets TRAINYARD_LOG for one test.
class LevelVariable {
 public:
  explicit LevelVariable(const char* value) { ::setenv(log::level_variable, value, 1); }
  ~LevelVariable() { ::unsetenv(log::level_variable); }
  LevelVariable(const LevelVariable&) = delete;
  LevelVariable& operator=(const LevelVariable&) = delete;
};

}  // namespace

TEST_CASE("a log level is one of six words") {
  CHECK(log::level_words() == "trace, debug, info, warning, error, off");
  CHECK(log::level_named("debug") == log::Level::debug);
  CHECK(log::level_named("off") == log::Level::off);
  for (const char* wrong : {"", "Debug", "warn", "info ", "loud"}) CHECK_FALSE(log::level_named(wrong));
  CHECK(to_text(log::Level::warning) == "warning");
}

TEST_CASE(
    "TRAINYARD_LOG sets the level, its default is info, and the error for a wrong word lists all levels") {
  CHECK(log::level_from_environment() == log::Level::info);
  CHECK((LevelVariable(""), log::level_from_environment()) == log::Level::info);
  CHECK((LevelVariable("trace"), log::level_from_environment()) == log::Level::trace);
  const LevelVariable wrong("loud");
  CHECK_THROWS_WITH_AS(
      log::level_from_environment(),
      "TRAINYARD_LOG must be one of trace, debug, info, warning, error, off, but is \"loud\"", UserError);
}

TEST_CASE("an event is one line, whatever its fields contain") {
  CHECK(
      log::text_of("launched", {{"run", "3f9a"}, {"attempt", 2}, {"seconds", 0.25}, {"label", "mlp ddp"}}) ==
      "launched run=3f9a attempt=2 seconds=0.25 label=\"mlp ddp\"");
  CHECK(log::text_of("failed", {{"cause", "a \"b\"\nc\x1b[2J\xff"}, {"log", ""}, {"why", "x=1"}}) ==
        "failed cause=\"a \\\"b\\\"\\nc\\u001b[2J\\xff\" log=\"\" why=\"x=1\"");
}

TEST_CASE("a line has UTC, level and process id, and lines below the level are not written") {
  const ScratchFolder folder;
  const fs::path file = folder / "trainyard.log";
  {
    const log::File open(file, log::Level::info);
    log::debug("hidden");
    log::info("launched", {{"run", "3f9a"}});
    log::warning("slow");
    const fs::path own = "/proc/self/fd";
    for (const auto& entry : fs::directory_iterator(own))
      if (std::error_code gone; fs::read_symlink(entry.path(), gone) == file)
        CHECK((::fcntl(std::stoi(entry.path().filename()), F_GETFD) & FD_CLOEXEC) != 0);
  }
  log::info("after the end");
  std::istringstream lines(read_text(file));
  std::string first, second, third;
  std::getline(lines, first);
  std::getline(lines, second);
  CHECK_FALSE(std::getline(lines, third));
  const std::string form = R"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z )",
                    pid = " " + std::to_string(::getpid()) + " ";
  CHECK_MESSAGE(std::regex_match(first, std::regex(form + "info" + pid + "launched run=3f9a")), first);
  CHECK_MESSAGE(std::regex_match(second, std::regex(form + "warning" + pid + "slow")), second);
  CHECK(log::level_of_line(first) == log::Level::info);
  CHECK(log::level_of_line(second) == log::Level::warning);
}

TEST_CASE("a line of another program has no level") {
  for (const char* line :
       {"", "error: no luck", "2026-11-23T02:12:55.123Z", "2026-11-23T02:12:55.123Z loud 1 x",
        "2026-11-23 02:12:55,123 info 1 x", "2026-11-23T02:12:55.123Z info epoch 1"})
    CHECK_MESSAGE(!log::level_of_line(line), line);
}

TEST_CASE("a log is appended to, and three files hold the newest lines") {
  const ScratchFolder folder;
  const fs::path file = folder / "trainyard.log";
  write_text(file, "before\n");
  const std::string large(1'000'000, 'x');
  {
    const log::File open(file, log::Level::info);
    log::info("one");
    CHECK(read_text(file).starts_with("before\n20"));
    for (int i = 0; i < 22; ++i) log::info("many", {{"text", large}});
  }
  for (const char* name : {"trainyard.log", "trainyard.1.log", "trainyard.2.log"}) {
    CHECK(fs::exists(folder / name));
    CHECK(fs::file_size(folder / name) <= log::largest_file);
  }
  CHECK_FALSE(fs::exists(folder / "trainyard.3.log"));
}

TEST_CASE("a log that is not a regular file is never opened, and on a full disk only lines are lost") {
  const ScratchFolder folder;
  write_text(folder / "outside", "precious");
  fs::create_symlink(folder / "outside", folder / "link.log");
  fs::create_symlink(folder / "new", folder / "nowhere.log");
  fs::create_directory(folder / "folder.log");
  for (const char* name : {"link.log", "nowhere.log", "folder.log"}) {
    const log::File open(folder / name, log::Level::info);
    log::info("launched");
  }
  CHECK(read_text(folder / "outside") == "precious");
  CHECK_FALSE(fs::exists(folder / "new"));

  const log::File open(folder / "full.log", log::Level::info);
  {
    const FileSizeLimit full(100);
    for (int i = 0; i < 10; ++i) log::info("launched", {{"run", i}});
  }
  CHECK(fs::file_size(folder / "full.log") <= 100);
  const log::File none(folder / "off.log", log::Level::off);
  CHECK_FALSE(fs::exists(folder / "off.log"));
}
