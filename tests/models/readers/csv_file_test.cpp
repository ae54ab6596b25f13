#include "models/readers/csv_file.h"

#include <doctest/doctest.h>

#include "tests/support/contains.h"
#include "tests/support/data_folder.h"

using namespace trainyard;
using namespace trainyard::models;
using namespace trainyard::tests;

namespace {

using Cells = std::vector<std::string>;

CsvTable table_in(const std::string& text) {
  const DataFolder folder;
  Sha256 hash;
  return read_csv(folder.write("t.csv", text), "train", hash);
}

// The error without the folder.
std::string error_in(const std::string& text) {
  const DataFolder folder;
  const auto file = folder.write("t.csv", text);
  Sha256 hash;
  const std::string error = user_error_of([&] { read_csv(file, "train", hash); });
  return error.substr(std::min(error.find("t.csv"), error.size()));
}

}  // namespace

// The expected cells are those of Python's csv.reader(strict=True).
TEST_CASE("a table of RFC 4180 is read: quotation marks, line breaks in cells, and both line ends") {
  const CsvTable table = table_in(
      "\xef\xbb\xbf"
      "a,\"b, c\",d\r\n1,\"two\nlines \"\"q\"\"\",\r\n\r\n\"\",2,3");
  CHECK(table.names == Cells{"a", "b, c", "d"});
  CHECK(table.cells == Cells{"1", "two\nlines \"q\"", "", "", "2", "3"});
  CHECK(table.lines == std::vector<std::int64_t>{2, 5});
}

TEST_CASE("a table without its last line break has the same cells, and a gzip file too") {
  CHECK(table_in("a,b\n1,2").cells == table_in("a,b\n1,2\n").cells);
  CHECK(table_in(gzipped("a,b\n1,2\n")).cells == Cells{"1", "2"});
}

TEST_CASE("a damaged table is one line with file and line") {
  CHECK(error_in("") == "t.csv is empty; write the names of the columns into the first row");
  CHECK(contains(error_in("\n\r\n"), "t.csv is empty"));
  CHECK(error_in("a,b\n") == "t.csv has only the names of the columns; add rows below them");
  CHECK(contains(error_in("a,b\n1,2\n3\n"), "t.csv:3: the row has 1 cell, but the first row has 2; "));
  CHECK(contains(error_in("a,b\n1,2,3\n"), "t.csv:2: the row has 3 cells, but the first row has 2; "));
  CHECK(contains(error_in("\na,b,a\n1,2,3\n"), "t.csv:2: two columns have the name \"a\"; "));
  CHECK(contains(error_in("a,\n1,2\n"), "t.csv:1: a column has no name; "));
  CHECK(contains(error_in("a,b\n1,\"2\n"), "t.csv:2: a quotation mark is not closed; "));
  CHECK(contains(error_in("a,b\n\"1\"x,2\n"), "t.csv:2: characters follow a closing quotation mark; "));
  CHECK(contains(error_in("a,b\n1,2\"\n"), "t.csv:2: a quotation mark is inside a cell"));
  CHECK(contains(error_in("a,b\n1,\xff\n"), "t.csv: byte 6: this is not UTF-8; correct the file"));
}
