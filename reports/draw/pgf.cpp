#include "reports/draw/pgf.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <map>
#include <sstream>
#include <string_view>
#include <vector>

#include <boost/property_tree/ptree.hpp>
#include <boost/property_tree/xml_parser.hpp>
#include <fmt/format.h>

#include "base/error.h"
#include "reports/format/figure_size.h"
#include "reports/format/number_text.h"
#include "reports/format/table.h"

namespace trainyard::reports {

namespace {

using Node = boost::property_tree::ptree;
using Properties = std::map<std::string, std::string>;

std::vector<std::string> words_of(const std::string& text, char separator = ' ') {
  std::vector<std::string> words;
  std::istringstream in(text);
  for (std::string word; std::getline(in, word, separator);) {
    const std::size_t begin = word.find_first_not_of(" \n\t");
    if (begin == std::string::npos) continue;
    words.push_back(word.substr(begin, word.find_last_not_of(" \n\t") + 1 - begin));
  }
  return words;
}

double number_of(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) throw InternalError(fmt::format("PGF: \"{}\" is not a number", text));
  return value;
}

// The style sheet: rules with selectors of tags and classes, as in figure.css. Others, for example `:focus`, do not
// matter on paper.

struct Element {
  std::string tag;
  std::vector<std::string> classes;
};

bool has_class(const Element& element, const std::string& name) {
  return std::ranges::find(element.classes, name) != element.classes.end();
}

// ".chart .c-ddp.r" → {"", {"chart"}}, {"", {"c-ddp", "r"}}
std::vector<Element> selector_of(const std::string& text) {
  std::vector<Element> parts;
  for (const std::string& word : words_of(text)) {
    Element& part = parts.emplace_back();
    part.tag = word.substr(0, word.find('.'));
    if (word.find('.') != std::string::npos) part.classes = words_of(word.substr(word.find('.')), '.');
  }
  return parts;
}

bool matches(const Element& part, const Element& element) {
  return (part.tag.empty() || part.tag == element.tag) &&
         std::ranges::all_of(part.classes, [&](const std::string& name) { return has_class(element, name); });
}

// `path`: from the root of the document to the element.
bool matches(const std::vector<Element>& selector, const std::vector<Element>& path) {
  if (!matches(selector.back(), path.back())) return false;
  std::size_t left = selector.size() - 1;
  for (std::size_t i = path.size() - 1; i > 0 && left > 0; --i)
    left -= matches(selector[left - 1], path[i - 1]) ? 1 : 0;
  return left == 0;
}

struct Rule {
  std::vector<Element> selector;
  std::size_t weight = 0;  // specificity: classes before tags
  Properties properties;
};

Properties properties_of(const std::string& body) {
  Properties properties;
  for (const std::string& declaration : words_of(body, ';')) {
    const std::vector<std::string> sides = words_of(declaration, ':');
    if (sides.size() == 2) properties[sides[0]] = sides[1];
  }
  return properties;
}

// In the order in which they apply.
std::vector<Rule> rules_of(const std::string& css) {
  std::vector<Rule> rules;
  for (std::size_t at = 0; at < css.size();) {
    const std::size_t open = css.find('{', at);
    const std::size_t close = css.find('}', open);
    if (close == std::string::npos) break;
    for (const std::string& text : words_of(css.substr(at, open - at), ',')) {
      if (text.find_first_of(":@>*[") != std::string::npos) continue;
      Rule rule{selector_of(text), 0, properties_of(css.substr(open + 1, close - open - 1))};
      for (const Element& part : rule.selector)
        rule.weight += 100 * part.classes.size() + (part.tag.empty() ? 0 : 1);
      rules.push_back(std::move(rule));
    }
    at = close + 1;
  }
  std::ranges::stable_sort(rules, {}, &Rule::weight);
  return rules;
}

constexpr std::array own_properties{"opacity"};  // the others are inherited
constexpr std::array presentation{"fill",         "stroke",         "stroke-width",    "stroke-dasharray",
                                  "fill-opacity", "stroke-opacity", "stroke-linejoin", "opacity",
                                  "font-size",    "font-weight",    "text-anchor"};

double points(double pixels) {
  return pixels / units_per_inch * latex_points_per_inch;
}

std::string pt(double pixels) {
  return plain_number(std::round(points(pixels) * 1e4) / 1e4, 8) + "pt";
}

// Writes the picture. Its y axis points up.
class Writer {
 public:
  explicit Writer(const Node& root);
  std::string text() const { return out_; }

 private:
  void write(const std::string& tag, const Node& node, const Properties& inherited, double dx, double dy);
  void write_shape(const std::string& tag, const Node& node, const Properties& style, double dx, double dy);
  void write_path(const std::string& data, double dx, double dy);
  void write_text(const Node& node, const Properties& style, double x, double y);
  std::string point(double x, double y) const {
    return "\\pgfqpoint{" + pt(x) + "}{" + pt(height_ - y) + "}";
  }
  void line(const std::string& text) { out_ += text + "%\n"; }

  double height_ = 0;
  std::vector<Rule> rules_;
  std::vector<Element> path_;
  std::string out_;
};

std::string attribute(const Node& node, const std::string& name) {
  return node.get("<xmlattr>." + name, std::string());
}

double length_of(const Node& node, const std::string& name) {
  const std::string text = attribute(node, name);
  return text.empty() ? 0 : number_of(text);
}

Writer::Writer(const Node& root)
    : height_(length_of(root, "height")), rules_(rules_of(root.get("style", ""))) {
  out_ =
      "% A figure of trainyard. Read it with \\input in a document with \\usepackage{pgf}.\n"
      "\\begingroup%\n\\begin{pgfpicture}%\n";
  line("\\pgfpathrectangle{\\pgfpointorigin}{\\pgfqpoint{" + pt(length_of(root, "width")) + "}{" +
       pt(height_) + "}}");
  line("\\pgfusepath{use as bounding box}");
  write("svg", root, {{"fill", "#000000"}}, 0, 0);
  out_ += "\\end{pgfpicture}%\n\\endgroup%\n";
}

std::string value_of(const Properties& style, const char* name, const char* fallback) {
  const auto found = style.find(name);
  return found == style.end() ? fallback : found->second;
}

// "translate(14 20)" → 14, 20
std::vector<double> arguments(const std::string& transform, const std::string& function) {
  if (!transform.starts_with(function + "(")) return {};
  std::string inside = transform.substr(function.size() + 1, transform.find(')') - function.size() - 1);
  std::ranges::replace(inside, ',', ' ');
  std::vector<double> numbers;
  for (const std::string& word : words_of(inside)) numbers.push_back(number_of(word));
  return numbers;
}

void Writer::write(const std::string& tag, const Node& node, const Properties& inherited, double dx,
                   double dy) {
  static constexpr std::array silent{"title", "desc", "style", "<xmlattr>", "<xmltext>"};
  if (std::ranges::find(silent, tag) != silent.end()) return;
  path_.push_back({tag, words_of(attribute(node, "class"))});
  Properties style = inherited;
  for (const char* name : own_properties) style.erase(name);
  for (const char* name : presentation) {
    const std::string value = attribute(node, name);
    if (!value.empty()) style[name] = value;
  }
  for (const Rule& rule : rules_) {
    if (!matches(rule.selector, path_)) continue;
    for (const auto& [name, value] : rule.properties) style[name] = value;
  }
  if (tag == "g" || tag == "svg") {
    const std::vector<double> shift = arguments(attribute(node, "transform"), "translate");
    if (!shift.empty()) dx += shift.front();
    if (shift.size() > 1) dy += shift[1];
    for (const auto& [name, child] : node) write(name, child, style, dx, dy);
  } else if (tag == "text") {
    write_text(node, style, dx, dy);
  } else if (!has_class(path_.back(), "paper")) {
    write_shape(tag, node, style, dx, dy);
  }
  path_.pop_back();
}

// "#1a2b3c" or "#fff" → "1A2B3C"
std::string html_colour(const std::string& value) {
  const bool short_form = value.size() == 4;
  if (value.empty() || value.front() != '#' || !(short_form || value.size() == 7))
    throw InternalError("PGF: unknown colour " + value);
  std::string digits;
  for (const char digit : value.substr(1)) {
    const char upper = digit >= 'a' ? static_cast<char>(digit - 'a' + 'A') : digit;
    digits.append(short_form ? 2 : 1, upper);
  }
  return digits;
}

// Opacity of the whole element times that of fill or stroke; empty if it is 1.
std::string opacity_of(const Properties& style, const char* part) {
  const double opacity = number_of(value_of(style, "opacity", "1")) * number_of(value_of(style, part, "1"));
  return opacity < 1 ? plain_number(opacity) : "";
}

void Writer::write_shape(const std::string& tag, const Node& node, const Properties& style, double dx,
                         double dy) {
  const std::string fill = value_of(style, "fill", "none");
  const std::string stroke = value_of(style, "stroke", "none");
  const double width = number_of(value_of(style, "stroke-width", "1"));
  const bool filled = fill != "none" && tag != "line";
  const bool stroked = stroke != "none" && width > 0;
  if (!filled && !stroked) return;
  line("\\begin{pgfscope}");
  if (filled) {
    line("\\definecolor{trainyardfill}{HTML}{" + html_colour(fill) + "}\\pgfsetfillcolor{trainyardfill}");
    const std::string opacity = opacity_of(style, "fill-opacity");
    if (!opacity.empty()) line("\\pgfsetfillopacity{" + opacity + "}");
  }
  if (stroked) {
    line("\\definecolor{trainyardstroke}{HTML}{" + html_colour(stroke) +
         "}\\pgfsetstrokecolor{trainyardstroke}");
    line("\\pgfsetlinewidth{" + pt(width) + "}");
    const std::string opacity = opacity_of(style, "stroke-opacity");
    if (!opacity.empty()) line("\\pgfsetstrokeopacity{" + opacity + "}");
    if (value_of(style, "stroke-linejoin", "") == "round") line("\\pgfsetroundjoin");
    std::string dashes;
    for (const std::string& dash : words_of(value_of(style, "stroke-dasharray", "none")))
      if (dash != "none") dashes += "{" + pt(number_of(dash)) + "}";
    if (!dashes.empty()) line("\\pgfsetdash{" + dashes + "}{0pt}");
  }
  if (tag == "path") {
    write_path(attribute(node, "d"), dx, dy);
  } else if (tag == "line") {
    line("\\pgfpathmoveto{" + point(dx + length_of(node, "x1"), dy + length_of(node, "y1")) + "}");
    line("\\pgfpathlineto{" + point(dx + length_of(node, "x2"), dy + length_of(node, "y2")) + "}");
  } else if (tag == "circle") {
    line("\\pgfpathcircle{" + point(dx + length_of(node, "cx"), dy + length_of(node, "cy")) + "}{" +
         pt(length_of(node, "r")) + "}");
  } else if (tag == "rect") {
    const double height = length_of(node, "height");
    line("\\pgfpathrectangle{" + point(dx + length_of(node, "x"), dy + length_of(node, "y") + height) +
         "}{\\pgfqpoint{" + pt(length_of(node, "width")) + "}{" + pt(height) + "}}");
  } else {
    throw InternalError("PGF: unknown element " + tag);
  }
  line(filled && stroked ? "\\pgfusepath{fill,stroke}"
       : filled          ? "\\pgfusepath{fill}"
                         : "\\pgfusepath{stroke}");
  line("\\end{pgfscope}");
}

// Numbers and commands of a path, one by one.
class PathReader {
 public:
  explicit PathReader(std::string_view data) : rest_(data) {}
  bool at_end() {
    const std::size_t next = rest_.find_first_not_of(" ,\n");
    rest_.remove_prefix(std::min(next, rest_.size()));
    return rest_.empty();
  }
  bool at_command() { return !at_end() && std::isalpha(static_cast<unsigned char>(rest_.front())) != 0; }
  char command() {
    const char command = rest_.front();
    rest_.remove_prefix(1);
    return command;
  }
  double number() {
    at_end();
    double value = 0;
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (error != std::errc()) throw InternalError(fmt::format("PGF: path has \"{}\"", rest_.substr(0, 20)));
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    return value;
  }

 private:
  std::string_view rest_;
};

void Writer::write_path(const std::string& data, double dx, double dy) {
  PathReader reader(data);
  char command = ' ';
  double x = 0;
  double y = 0;
  while (!reader.at_end()) {
    if (reader.at_command()) command = reader.command();
    const bool relative = command >= 'a';
    const auto next = [&](double& value) { value = reader.number() + (relative ? value : 0); };
    switch (command) {
      case 'M':
      case 'm':
      case 'L':
      case 'l':
        next(x);
        next(y);
        break;
      case 'H':
      case 'h':
        next(x);
        break;
      case 'V':
      case 'v':
        next(y);
        break;
      case 'Z':
      case 'z':
        line("\\pgfpathclose");
        continue;
      default:
        throw InternalError(fmt::format("PGF: unknown command {} in a path", command));
    }
    const bool move = command == 'M' || command == 'm';
    line((move ? "\\pgfpathmoveto{" : "\\pgfpathlineto{") + point(dx + x, dy + y) + "}");
    if (move) command = relative ? 'l' : 'L';
  }
}

void Writer::write_text(const Node& node, const Properties& style, double dx, double dy) {
  const std::string anchor = value_of(style, "text-anchor", "start");
  const std::string side = anchor == "start" ? "left," : anchor == "end" ? "right," : "";
  const std::vector<double> turn = arguments(attribute(node, "transform"), "rotate");
  const std::string rotate = turn.empty() ? "" : ",rotate=" + plain_number(-turn.front());
  const double size = points(number_of(value_of(style, "font-size", "10.5px")));
  const bool bold = number_of(value_of(style, "font-weight", "400")) > 500;
  line(
      fmt::format("\\pgftext[x={},y={},{}base{}]{{\\definecolor{{trainyardtext}}{{HTML}}{{{}}}"
                  "\\color{{trainyardtext}}\\fontsize{{{}}}{{{}}}\\selectfont{} {}}}",
                  pt(dx + length_of(node, "x")), pt(height_ - dy - length_of(node, "y")), side, rotate,
                  html_colour(value_of(style, "fill", "#000000")), plain_number(size, 4),
                  plain_number(1.2 * size, 4), bold ? "\\bfseries" : "", pgf_text(node.data())));
}

// Signs beyond those of `latex_escaped`.
constexpr std::array<std::pair<char32_t, const char*>, 22> signs{{{U'▲', "$\\triangle$"},
                                                                  {U'▼', "$\\bigtriangledown$"},
                                                                  {U'●', "$\\bullet$"},
                                                                  {U'≠', "$\\neq$"},
                                                                  {U'∅', "$\\emptyset$"},
                                                                  {U'✗', "$\\times$"},
                                                                  {U'✓', "$\\surd$"},
                                                                  {U'∞', "$\\infty$"},
                                                                  {U'→', "$\\rightarrow$"},
                                                                  {U'·', "$\\cdot$"},
                                                                  {U'µ', "$\\mu$"},
                                                                  {U'μ', "$\\mu$"},
                                                                  {U'σ', "$\\sigma$"},
                                                                  {U'√', "$\\surd$"},
                                                                  {U'÷', "$\\div$"},
                                                                  {U'°', "$^\\circ$"},
                                                                  {U'²', "$^2$"},
                                                                  {U'³', "$^3$"},
                                                                  {U'—', "---"},
                                                                  {U'’', "'"},
                                                                  {U'“', "``"},
                                                                  {U'”', "''"}}};

// À … ÿ without Eth, Thorn and the signs × and ÷: pdflatex sets them in any text font.
bool is_latin(char32_t character) {
  return character >= 0xc0 && character <= 0xff && character != 0xd0 && character != 0xde &&
         character != 0xf0 && character != 0xfe && character != 0xd7 && character != 0xf7;
}

std::string latex_of(char32_t character, std::string_view bytes) {
  const auto* const sign = std::ranges::find(signs, character, &std::pair<char32_t, const char*>::first);
  if (sign != signs.end()) return sign->second;
  if (is_latin(character)) return std::string(bytes);
  // Only LuaTeX and XeTeX have \Umathchar.
  return fmt::format("\\ifx\\Umathchar\\undefined U+{:04X}\\else {}\\fi{{}}",
                     static_cast<std::uint32_t>(character), bytes);
}

}  // namespace

std::string pgf_text(const std::string& text) {
  const std::string escaped = latex_escaped(text);
  std::string out;
  for (std::size_t at = 0; at < escaped.size();) {
    const auto first = static_cast<unsigned char>(escaped[at]);
    const std::size_t length = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    const std::string_view bytes = std::string_view(escaped).substr(at, length);
    char32_t character = length == 1 ? first : first & (0xffU >> (length + 1));
    for (std::size_t i = 1; i < bytes.size(); ++i)
      character = (character << 6U) | (static_cast<unsigned char>(bytes[i]) & 0x3fU);
    out += length == 1 ? std::string(bytes) : latex_of(character, bytes);
    at += length;
  }
  return out;
}

std::string pgf_of(const std::string& svg) {
  std::istringstream in(svg);
  Node document;
  boost::property_tree::read_xml(in, document);
  return Writer(document.get_child("svg")).text();
}

}  // namespace trainyard::reports
