// Plain text tables and paragraphs for a terminal, a file or a pipe.
//
// `width`: number of columns of a terminal. 0, for files and pipes: no line is wrapped. No text is ever cut.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "reports/format/table.h"

namespace trainyard::reports {

// Lines of at most `width` columns, broken between words. Longer words are broken too. Control characters are
// made visible.
std::vector<std::string> wrapped(std::string_view text, std::size_t width);

// The same lines as one text. Lines after the first are indented by two columns.
std::string paragraph(std::string_view text, std::size_t width);

// Two spaces between columns, no trailing blanks. If the table is wider than `width`, text is wrapped in its
// cells. If that is not enough, the last columns continue on indented lines. Notes follow as paragraphs.
std::string aligned_table(const Table& table, std::size_t width = 0);

}  // namespace trainyard::reports
