#include "models/printable.h"

#include <doctest/doctest.h>

using namespace trainyard::models;

TEST_CASE("text without control characters is printed as it is, in any language") {
  for (const char* text : {"", "a b\tc\n", "é – 日本語 😀 ━━╸", "\"<b>' OR 1=1; $(rm -rf *)"})
    CHECK(printable(text) == text);
}

TEST_CASE("control characters, C1 ones too, stand as in JSON; bytes that are no UTF-8 in hexadecimal") {
  CHECK(printable("\x1b[31mred\x07\r\x7f") == "\\u001b[31mred\\u0007\\u000d\\u007f");
  CHECK(printable("\xc2\x9b"
                  "2J") == "\\u009b2J");  // CSI in one character
  CHECK(printable(std::string_view("\0", 1)) == "\\u0000");
  CHECK(printable("\xe2\x80\xae"
                  "gpj.exe") == "\\u202egpj.exe");  // right-to-left override
  CHECK(printable("\x9b"
                  "2J \xff \xc3") == "\\x9b2J \\xff \\xc3");
  // longer than needed, a surrogate, above the last one: RFC 3629, section 3
  CHECK(printable("\xc0\x9b") == "\\xc0\\x9b");
  CHECK(printable("\xe0\x80\x9b") == "\\xe0\\x80\\x9b");
  CHECK(printable("\xed\xa0\x80") == "\\xed\\xa0\\x80");
  CHECK(printable("\xf4\x90\x80\x80") == "\\xf4\\x90\\x80\\x80");
}

TEST_CASE("on one line a newline and a tab are seen") {
  CHECK(printable_line("a\n\tb\x1b") == "a\\n\\tb\\u001b");
}

TEST_CASE("a log keeps its colours and the bar that is drawn over, and nothing else that moves the cursor") {
  CHECK(printable_log("\x1b[1;31mred\x1b[0m 10%\r20%\n") == "\x1b[1;31mred\x1b[0m 10%\r20%\n");
  CHECK(printable_log("\x1b[2J\x1b]0;title\x07\x1b[3") == "\\u001b[2J\\u001b]0;title\\u0007\\u001b[3");
}

TEST_CASE("what is UTF-8, and what may become it") {
  CHECK(is_utf8("é😀\x1b"));
  CHECK_FALSE(is_utf8("\xff"));
  const std::string smile = "😀";
  for (std::size_t size = 1; size < smile.size(); ++size)
    CHECK(incomplete_end("a" + smile.substr(0, size)) == size);
  CHECK(incomplete_end("a" + smile) == 0);
  CHECK(incomplete_end("") == 0);
  CHECK(incomplete_end("\x80\x80\x80\x80") == 0);
}
