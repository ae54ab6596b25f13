// Text of others (names, errors, what a program printed) as a terminal may have it: nothing in it moves the
// cursor, changes colours, or turns the direction of writing; and how many columns it takes there.
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

// Columns of one line on a terminal: two for a wide character (日, 😀), none for a combining one and for
// colours
// ("\033[1;31m"), one for a byte that is no UTF-8.
std::size_t columns(std::string_view text);

// At most `width` columns of a line without colours; where something is cut off its last one is an ellipsis.
// No character is cut apart, nor from the combining ones that follow it.
std::string shortened(std::string_view text, std::size_t width);

// With spaces up to `width` columns, after the text or before it.
std::string padded(const std::string& text, std::size_t width);
std::string padded_left(const std::string& text, std::size_t width);

// What is said of an error in one line: LibTorch puts a stack trace below its own.
std::string first_line(std::string_view text);

bool is_utf8(std::string_view text);

// How many bytes at the end of `text` are the beginning of a character whose other bytes may still come.
std::size_t incomplete_end(std::string_view text);

}  // namespace trainyard::models
