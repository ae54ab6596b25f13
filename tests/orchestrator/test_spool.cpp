#include <fstream>

#include <doctest/doctest.h>

#include "orchestrator/collector.h"
#include "orchestrator/spool_tail.h"
#include "orchestrator/store.h"
#include "sweep_bench.h"

using namespace trainyard::orchestrator;

namespace {

void append(const std::filesystem::path& file, const std::string& text) {
  std::ofstream(file, std::ios::app) << text;
}

using Lines = std::vector<std::string>;

}  // namespace

TEST_CASE("a line without its newline is not there yet, and comes whole when its end is written") {
  const TemporaryFolder folder;
  const auto file = folder.path / "spool";
  SpoolTail tail(file);
  CHECK(tail.new_lines().empty());  // no file yet
  append(file, "one\ntwo\nthr");
  CHECK(tail.new_lines() == Lines{"one", "two"});
  CHECK(tail.new_lines().empty());
  append(file, "ee\n");
  CHECK(tail.new_lines() == Lines{"three"});
}

TEST_CASE("the error line of a log is the last one that looks like an error") {
  const TemporaryFolder folder;
  const auto log = folder.path / "rank-0.log";
  CHECK_FALSE(last_error_line(log));
  append(log, "loading\nValueError: first\n  what():  second \nshutting down\n\n");
  CHECK(last_error_line(log) == "what():  second");
}

TEST_CASE("a log without an error has no error line") {
  const TemporaryFolder folder;
  append(folder.path / "log", "loading\nepoch 1\n");
  CHECK_FALSE(last_error_line(folder.path / "log"));
}

TEST_CASE("the store's address is a whole line of host and port") {
  CHECK_FALSE(parse_store_address("127.0.0.1 29"));
  CHECK(parse_store_address("127.0.0.1 29500\n")->port == "29500");
  CHECK(parse_store_address("a warning first\n127.0.0.1 29500\n")->host == "127.0.0.1");
  CHECK_FALSE(parse_store_address("two words\n"));
}
