// Translates our SVG documents to PGF. A LaTeX document reads the result with \input and sets the text in its own
// font, as with Matplotlib's backend of that name. It needs the package pgf and nothing else.
#pragma once

#include <string>

namespace trainyard::reports {

// `svg`: a document of `svg_document`. It may have g, rect, circle, path with straight lines, and text, with
// the style sheet of figures. InternalError for anything else.
std::string pgf_of(const std::string& svg);

// Text for LaTeX. Signs that pdflatex cannot set become commands. A letter that it does not have is written as its
// number, "U+4E2D", and LuaLaTeX and XeLaTeX set the letter.
std::string pgf_text(const std::string& text);

}  // namespace trainyard::reports
