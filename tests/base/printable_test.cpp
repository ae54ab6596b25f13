#include <doctest/doctest.h>

#include "base/text.h"

using namespace trainyard;

TEST_CASE("a text without control characters is printed unchanged in any language") {
  for (const char* text : {"", "a b\tc\n", "é – 日本語 😀 ━━╸", "\"<b>' OR 1=1; $(rm -rf *)"})
    CHECK(printable(text) == text);
}

TEST_CASE("control characters are escaped as in JSON, and bytes that are not UTF-8 in hexadecimal") {
  CHECK(printable("\x1b[31mred\x07\r\x7f") == "\\u001b[31mred\\u0007\\u000d\\u007f");
  CHECK(printable("\xc2\x9b"
                  "2J") == "\\u009b2J");  // CSI in one character
  CHECK(printable(std::string_view("\0", 1)) == "\\u0000");
  CHECK(printable("\xe2\x80\xae"
                  "gpj.exe") == "\\u202egpj.exe");  // right-to-left override
  CHECK(printable("\x9b"
                  "2J \xff \xc3") == "\\x9b2J \\xff \\xc3");
  // overlong forms, a surrogate, above U+10FFFF: RFC 3629, section 3
  CHECK(printable("\xc0\x9b") == "\\xc0\\x9b");
  CHECK(printable("\xe0\x80\x9b") == "\\xe0\\x80\\x9b");
  CHECK(printable("\xed\xa0\x80") == "\\xed\\xa0\\x80");
  CHECK(printable("\xf4\x90\x80\x80") == "\\xf4\\x90\\x80\\x80");
}

TEST_CASE("on one line a newline and a tab are escaped") {
  CHECK(printable_line("a\n\tb\x1b") == "a\\n\\tb\\u001b");
}

TEST_CASE("a log keeps colours and carriage returns, and every other control character is escaped") {
  CHECK(printable_log("\x1b[1;31mred\x1b[0m 10%\r20%\n") == "\x1b[1;31mred\x1b[0m 10%\r20%\n");
  CHECK(printable_log("\x1b[2J\x1b]0;title\x07\x1b[3") == "\\u001b[2J\\u001b]0;title\\u0007\\u001b[3");
}

// Widths: Unicode Standard Annex #11. East Asian Width W and F are two columns, combining marks are none.
TEST_CASE("on a terminal a wide character takes two columns, a combining character or a colour none") {
  CHECK(columns("") == 0);
  CHECK(columns("a – é") == 5);
  CHECK(columns("日本語") == 6);
  CHECK(columns("Ａ😀") == 4);             // full-width A
  CHECK(columns("e\u0301n\u0303") == 2);  // é and ñ in two characters each
  CHECK(columns("\x1b[1;31mred\x1b[0m ━╸") == 6);
  CHECK(columns("\xff\xc3(\x07") == 4);  // not UTF-8, and a bell: one column each
}

TEST_CASE("a shortened text has at most the given width, and ends with an ellipsis if something is cut off") {
  CHECK(shortened("seven", 5) == "seven");
  CHECK(shortened("seven", 4) == "sev…");
  CHECK(shortened("seven", 1) == "…");
  CHECK(shortened("seven", 0).empty());
  CHECK(shortened("", 0).empty());
  CHECK(shortened("日本語", 6) == "日本語");
  CHECK(shortened("日本語", 5) == "日本…");
  CHECK(shortened("日本語", 4) == "日…");  // 本 needs two columns
  CHECK(shortened("日本語", 2) == "…");
  CHECK(shortened("ne\u0301e", 3) == "ne\u0301e");
  CHECK(shortened("ne\u0301es", 3) == "ne\u0301…");  // the accent stays with its e
  CHECK(shortened("nes", 2) == "n…");
}

TEST_CASE("a character is never divided, whatever the width") {
  const std::string text = "aé日😀\u0301 – 本";
  for (std::size_t width = 0; width <= columns(text); ++width) {
    CHECK(is_utf8(shortened(text, width)));
    CHECK(columns(shortened(text, width)) <= width);
  }
  const std::string damaged = "ab\xe6\x97";  // ends within 日
  CHECK(shortened(damaged, 4) == damaged);
  CHECK(shortened(damaged, 3) == "ab…");
}

TEST_CASE("a text is padded to a number of columns") {
  CHECK(padded("日", 4) == "日  ");
  CHECK(padded_left("e\u0301", 3) == "  e\u0301");
  CHECK(padded("four", 3) == "four");
}

TEST_CASE("the first line of an error is the text before its stack trace") {
  CHECK(first_line("sizes do not match\nException raised from\nframe #0") == "sizes do not match");
  CHECK(first_line("one line") == "one line");
  CHECK(first_line("\nbelow").empty());
  CHECK(first_line("").empty());
}

TEST_CASE("UTF-8, its first wrong byte, and the bytes of an incomplete character at the end are found") {
  CHECK(is_utf8("é😀\x1b"));
  CHECK_FALSE(first_not_utf8("Größe 日本 😀"));
  CHECK(first_not_utf8("Gr\xf6\xdf"
                       "e") == 2);                    // Latin-1
  CHECK(first_not_utf8("a\xc3") == 1);                // cut off
  CHECK(first_not_utf8("ab\xc0\xaf") == 2);           // overlong
  CHECK(first_not_utf8("\xed\xa0\x80") == 0);         // surrogate
  CHECK(first_not_utf8("ok \xf4\x90\x80\x80") == 3);  // beyond U+10FFFF
  CHECK_FALSE(is_utf8("\xff"));
  const std::string smile = "😀";
  for (std::size_t size = 1; size < smile.size(); ++size)
    CHECK(incomplete_end("a" + smile.substr(0, size)) == size);
  CHECK(incomplete_end("a" + smile) == 0);
  CHECK(incomplete_end("") == 0);
  CHECK(incomplete_end("\x80\x80\x80\x80") == 0);
}

TEST_CASE("times are written for people") {
  CHECK(clock_text(3.4) == "0:03");
  CHECK(clock_text(754) == "12:34");
  CHECK(clock_text(3723) == "1:02:03");
  CHECK(duration_text(0.04) == "0.0 s");
  CHECK(duration_text(59.96) == "1 min 0 s");
  CHECK(duration_text(7500) == "2 h 5 min");
}
