#include "orchestrator/rank/log_limit.h"

#include <filesystem>
#include <fstream>

#include <doctest/doctest.h>

#include "orchestrator/sweep/collector.h"
#include "tests/orchestrator/support/sweep_fixture.h"
#include "tests/support/contains.h"

using namespace trainyard;
using namespace trainyard::orchestrator;

TEST_CASE("a log that is too large keeps its last part under another name, says so, and continues") {
  const TemporaryFolder folder;
  const auto log = folder.path / "rank-0.log";
  std::ofstream writer(log, std::ios::app);
  writer << "first\n" << std::string(9000, 'x') << "\nlast\n" << std::flush;
  CHECK_FALSE(shorten_log(log, 10'000));
  CHECK(shorten_log(log, 4096));
  const auto kept = text_of(folder.path / "rank-0.1.log");
  CHECK(kept.size() == 4096);
  CHECK(kept.ends_with("x\nlast\n"));
  writer << "ValueError: later" << std::endl;
  const auto text = text_of(log);
  CHECK_MESSAGE(contains(text, "log shortened largest_bytes=4096 earlier=rank-0.1.log\nValueError: later\n"),
                text);
  CHECK(last_error_line(log) == "ValueError: later");
  CHECK_FALSE(shorten_log(log, 4096));
  CHECK_FALSE(shorten_log(folder.path / "none", 4096));
}

TEST_CASE("a link in the place of a log, or of its earlier part, is not followed") {
  const TemporaryFolder folder;
  const auto log = folder.path / "rank-0.log", precious = folder.path / "precious";
  std::ofstream(precious) << std::string(9000, 'p');
  std::filesystem::create_symlink(precious, log);
  CHECK_FALSE(shorten_log(log, 4096));
  std::filesystem::remove(log);
  std::ofstream(log) << std::string(9000, 'x');
  std::filesystem::create_symlink(precious, folder.path / "rank-0.1.log");
  CHECK(shorten_log(log, 4096));
  CHECK(text_of(precious) == std::string(9000, 'p'));
  CHECK(text_of(folder.path / "rank-0.1.log") == std::string(4096, 'x'));
}
