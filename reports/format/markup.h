// Writes HTML and SVG: elements, attributes and text. Values and texts are escaped, so no name from an
// experiment file can become markup. Tags and attribute names are not escaped: they must be constants.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace trainyard::reports {

// Writes & < > " ' as entities. Forbidden control characters are dropped, invalid UTF-8 becomes U+FFFD.
std::string escaped(std::string_view text);

class Markup {
 public:
  using Attributes = std::initializer_list<std::pair<std::string_view, std::string>>;

  Markup& open(std::string_view tag, Attributes attributes = {});
  Markup& close();  // the innermost open element
  Markup& text(std::string_view text);
  Markup& leaf(std::string_view tag, Attributes attributes, std::string_view text);  // <tag …>text</tag>
  Markup& empty(std::string_view tag, Attributes attributes = {});                   // <tag …/>
  Markup& add(const Markup& part);                                                   // a finished part
  Markup& line();                           // a line break, for readers of the source
  Markup& verbatim(std::string_view ours);  // not escaped: our own style sheets, scripts, the doctype

  // The document. InternalError if an element is still open.
  const std::string& str() const;

 private:
  void start(std::string_view tag, Attributes attributes);

  std::string out_;
  std::vector<std::string> open_;
};

}  // namespace trainyard::reports
