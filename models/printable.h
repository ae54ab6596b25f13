// Text of others (names, errors, what a program printed) as a terminal may have it: nothing in it moves the
// cursor, changes colours, or turns the direction of writing.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace trainyard::models {

// Control characters stand as in JSON, \u001b, and bytes that are no UTF-8 as \xff. A newline and a tab stay.
std::string printable(std::string_view text);

// And on one line: a newline stands as \n, a tab as \t.
std::string printable_line(std::string_view text);

// As `printable`, with what a program's progress bar needs: a return to the line's begin, and colours
// ("\033[1;31m").
std::string printable_log(std::string_view text);

bool is_utf8(std::string_view text);

// How many bytes at the end of `text` are the beginning of a character whose other bytes may still come.
std::size_t incomplete_end(std::string_view text);

}  // namespace trainyard::models
