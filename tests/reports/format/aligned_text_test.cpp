// Tables and paragraphs of plain text, in files and on narrow terminals.
#include "reports/format/aligned_text.h"

#include <doctest/doctest.h>

namespace trainyard::reports {
namespace {

Table wide() {
  Table table;
  table.columns = {"key", "run", right_column("effect")};
  table.rows = {{"3f9a", "mlp ddp seed 0 learning_rate=0.1", "-3 %"},
                {"77b2", "mlp ddp seed 0 learning_rate=0.05", "+12 %"}};
  return table;
}

}  // namespace

TEST_CASE("a table without limit has each row on one line and cuts nothing") {
  CHECK(aligned_table(wide()) ==
        "key   run                                effect\n"
        "3f9a  mlp ddp seed 0 learning_rate=0.1     -3 %\n"
        "77b2  mlp ddp seed 0 learning_rate=0.05   +12 %\n");
}

TEST_CASE("a table that is wider than the terminal wraps text in its cells") {
  CHECK(aligned_table(wide(), 35) ==
        "key   run                    effect\n"
        "3f9a  mlp ddp seed 0           -3 %\n"
        "      learning_rate=0.1\n"
        "77b2  mlp ddp seed 0          +12 %\n"
        "      learning_rate=0.05\n");
}

TEST_CASE("the last columns of a table continue on indented lines if cells cannot get narrower") {
  Table table;
  table.columns = {"one", "two", right_column("three")};
  table.rows = {{"aaaaaaaaaa", "bbbbbbbbbb", "cccccccccc"}};
  CHECK(aligned_table(table, 24) ==
        "one         two\n"
        "       three\n"
        "aaaaaaaaaa  bbbbbbbbbb\n"
        "  cccccccccc\n");
}

TEST_CASE("text is broken between words, long words anywhere, and wide characters by their columns") {
  CHECK(wrapped("one two three", 7) == std::vector<std::string>{"one two", "three"});
  CHECK(wrapped("abcdefghij", 4) == std::vector<std::string>{"abcd", "efgh", "ij"});
  CHECK(wrapped("日本語", 4) == std::vector<std::string>{"日本", "語"});
  CHECK(wrapped("", 4) == std::vector<std::string>{""});
  CHECK(wrapped("one two three", 0) == std::vector<std::string>{"one two three"});
  CHECK(paragraph("warning: one two", 12) == "warning:\n  one two\n");
}

}  // namespace trainyard::reports
