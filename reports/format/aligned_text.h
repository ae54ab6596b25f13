// Plain text tables and paragraphs for a terminal, a file or a pipe. Used by `terminal_table` and by the
// verbs of the command line.
//
// `width` is the number of columns of a terminal. 0 means no limit: a file or a pipe, in which nothing is
// wrapped. No text is ever cut.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace trainyard::reports {

using TextRow = std::vector<std::string>;

// Lines of at most `width` columns, broken between words; a longer word is broken anywhere. Control
// characters are made visible.
std::vector<std::string> wrapped(std::string_view text, std::size_t width);

// The same as one text; the lines after the first are indented by two columns.
std::string paragraph(std::string_view text, std::size_t width);

// Rows of equally many cells, the head first: two spaces between columns, no trailing blanks, the columns in
// `right` aligned right (empty: none). If the table is wider than `width`, text is wrapped in its cells. If
// that is not enough, the last columns continue on indented lines.
std::string aligned_rows(const std::vector<TextRow>& rows, const std::vector<bool>& right,
                         std::size_t width = 0);

}  // namespace trainyard::reports
