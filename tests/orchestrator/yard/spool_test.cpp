#include <fstream>

#include <doctest/doctest.h>

#include "orchestrator/rank/rendezvous.h"
#include "orchestrator/sweep/collector.h"
#include "orchestrator/yard/record_log_tail.h"
#include "tests/orchestrator/support/sweep_fixture.h"
#include "tests/support/patience.h"

using namespace trainyard::orchestrator;

namespace {

void append(const std::filesystem::path& file, const std::string& text) {
  std::ofstream(file, std::ios::app) << text;
}

using Lines = std::vector<std::string>;

}  // namespace

TEST_CASE("a line without its newline is not returned until its end is written") {
  const TemporaryFolder folder;
  const auto file = folder.path / "spool";
  RecordLogTail tail(file);
  CHECK(tail.new_lines().empty());  // no file yet
  append(file, "one\ntwo\nthr");
  CHECK(tail.new_lines() == Lines{"one", "two"});
  CHECK(tail.new_lines().empty());
  append(file, "ee\n");
  CHECK(tail.new_lines() == Lines{"three"});
}

TEST_CASE(
    "on a shared file system a hole is waited for, and a replaced file is read from the same position") {
  const TemporaryFolder folder;
  const auto file = folder.path / "spool";
  RecordLogTail tail(file, true);
  append(file, "one\ntw");
  CHECK(tail.new_lines() == Lines{"one"});
  append(file,
         std::string("o\n") + std::string(6, '\0') + "four\n");  // the length has arrived, the bytes have not
  CHECK(tail.new_lines() == Lines{"two"});
  CHECK(tail.new_lines().empty());
  std::ofstream(folder.path / "filled") << "one\ntwo\nthree\nfour\n";
  std::filesystem::rename(folder.path / "filled", file);
  CHECK(tail.new_lines() == Lines{"three", "four"});
}

TEST_CASE("one call reads a limited number of bytes, and says whether it has reached the end") {
  for (const bool shared : {false, true}) {
    const TemporaryFolder folder;
    const auto file = folder.path / "spool";
    append(file, "one\ntwo\nthree\n");
    RecordLogTail tail(file, shared);
    CHECK(tail.new_lines(6) == Lines{"one"});
    CHECK_FALSE(tail.at_end());
    CHECK(tail.new_lines(100) == Lines{"two", "three"});
    CHECK(tail.at_end());
    CHECK(tail.lines() == 3);
    CHECK(tail.bytes() == 14);
  }
}

TEST_CASE("of a line without an end only a limited part is read") {
  const TemporaryFolder folder;
  const auto file = folder.path / "spool";
  append(file, "one\n");
  std::filesystem::resize_file(file, std::uintmax_t{1} << 32);  // a hole of 4 GB
  RecordLogTail tail(file);
  Lines lines;
  do
    for (const auto& line : tail.new_lines()) lines.push_back(line);
  while (!tail.at_end());
  CHECK(lines == Lines{"one"});
  CHECK(tail.too_long());
  CHECK(tail.bytes() < 2 << 20);
}

TEST_CASE("a permanent hole is damage, and the lines after it are read") {
  const TemporaryFolder folder;
  const auto file = folder.path / "spool";
  append(file, std::string("one\n") + std::string(3, '\0') + "\ntwo\n");
  RecordLogTail tail(file, true);
  CHECK(tail.new_lines() == Lines{"one"});
  Lines rest;
  CHECK(becomes_true(trainyard::tests::patience, [&] { return !(rest = tail.new_lines()).empty(); }));
  CHECK(rest == Lines{std::string(3, '\0'), "two"});
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

TEST_CASE("an info line in the log of a rank is not the cause of its end") {
  const TemporaryFolder folder;
  const auto log = folder.path / "rank-0.log";
  append(log, "2026-11-23T02:12:55.123Z info 4711 epoch error=0.5\n");
  CHECK_FALSE(last_error_line(log));
  CHECK_FALSE(last_line(log));
  append(log,
         "2026-11-23T02:12:55.123Z warning 4711 message text=\"cannot pin\"\n2026-11-23T02:12:56.123Z info "
         "4711 epoch\n");
  CHECK(last_error_line(log) == "2026-11-23T02:12:55.123Z warning 4711 message text=\"cannot pin\"");
}

TEST_CASE("the address of the store is a complete line with host and port") {
  CHECK_FALSE(parse_store_address("127.0.0.1 29"));
  CHECK(parse_store_address("127.0.0.1 29500\n")->port == "29500");
  CHECK(parse_store_address("2026-11-23T02:12:55.123Z info 4711 store serves port=1\n127.0.0.1 29500\n")
            ->port == "29500");
  CHECK(parse_store_address("a warning first\n127.0.0.1 29500\n")->host == "127.0.0.1");
  CHECK_FALSE(parse_store_address("two words\n"));
}
