#include "experiments/protocol/record_lines.h"

#include <vector>

#include <doctest/doctest.h>

using namespace trainyard::experiments;

namespace {

std::vector<std::string> all(RecordLines& lines) {
  std::vector<std::string> found;
  while (auto line = lines.next()) found.push_back(*line);
  return found;
}

}  // namespace

TEST_CASE("bytes of any size become whole lines, counted from 1") {
  RecordLines lines;
  for (const char c : std::string("one\n\nthree\nfo")) lines.add({&c, 1});
  CHECK(all(lines) == std::vector<std::string>{"one", "", "three"});
  CHECK(all(lines).empty());
  lines.add("ur\nfive\n");
  CHECK(lines.next() == "four");
  CHECK(lines.count() == 4);
  CHECK(all(lines) == std::vector<std::string>{"five"});
}

TEST_CASE("a line that is too long ends the reading, whether its newline has come or not") {
  for (const char* end : {"", "\n", "\nnext\n"}) {
    RecordLines lines(8);
    lines.add(std::string("short\n12345678\n123456789") + end);
    CHECK(all(lines) == std::vector<std::string>{"short", "12345678"});
    CHECK(lines.too_long());
    CHECK(lines.count() == 2);
    lines.add("more\n");
    CHECK(all(lines).empty());
  }
}
