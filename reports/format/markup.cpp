#include "reports/format/markup.h"

#include "base/error.h"

namespace trainyard::reports {

namespace {

// Length of the UTF-8 sequence at `at`; 0 if it is invalid.
std::size_t sequence_length(std::string_view text, std::size_t at) {
  const auto first = static_cast<unsigned char>(text[at]);
  const std::size_t length = first < 0x80   ? 1
                             : first < 0xc2 ? 0
                             : first < 0xe0 ? 2
                             : first < 0xf0 ? 3
                             : first < 0xf5 ? 4
                                            : 0;
  if (length == 0 || at + length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((static_cast<unsigned char>(text[at + i]) & 0xc0U) != 0x80U) return 0;
  }
  const auto second = length > 1 ? static_cast<unsigned char>(text[at + 1]) : 0;
  const bool overlong = (first == 0xe0 && second < 0xa0) || (first == 0xf0 && second < 0x90);
  const bool none = first == 0xef && second == 0xbf && static_cast<unsigned char>(text[at + 2]) >= 0xbe;
  const bool outside = (first == 0xed && second >= 0xa0) || (first == 0xf4 && second >= 0x90);
  return overlong || outside || none ? 0 : length;
}

void append_escaped(std::string& out, char character) {
  switch (character) {
    case '&':
      out += "&amp;";
      return;
    case '<':
      out += "&lt;";
      return;
    case '>':
      out += "&gt;";
      return;
    case '"':
      out += "&quot;";
      return;
    case '\'':
      out += "&#39;";
      return;
    default:
      break;
  }
  const auto byte = static_cast<unsigned char>(character);
  const bool allowed = (byte >= 0x20 && byte != 0x7f) || character == '\n' || character == '\t';
  if (allowed) out += character;
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = sequence_length(text, at);
    if (length == 0) {
      out += "\xef\xbf\xbd";
    } else if (length == 1) {
      append_escaped(out, text[at]);
    } else {
      out += text.substr(at, length);
    }
    at += length == 0 ? 1 : length;
  }
  return out;
}

void Markup::start(std::string_view tag, Attributes attributes) {
  out_ += '<';
  out_ += tag;
  for (const auto& [name, value] : attributes) {
    out_ += ' ';
    out_ += name;
    out_ += "=\"";
    out_ += escaped(value);
    out_ += '"';
  }
}

Markup& Markup::open(std::string_view tag, Attributes attributes) {
  start(tag, attributes);
  out_ += '>';
  open_.emplace_back(tag);
  return *this;
}

Markup& Markup::close() {
  if (open_.empty()) throw InternalError("markup: no element is open");
  out_ += "</" + open_.back() + ">";
  open_.pop_back();
  return *this;
}

Markup& Markup::text(std::string_view text) {
  out_ += escaped(text);
  return *this;
}

Markup& Markup::leaf(std::string_view tag, Attributes attributes, std::string_view content) {
  return open(tag, attributes).text(content).close();
}

Markup& Markup::empty(std::string_view tag, Attributes attributes) {
  start(tag, attributes);
  out_ += "/>";
  return *this;
}

Markup& Markup::add(const Markup& part) {
  out_ += part.str();
  return *this;
}

Markup& Markup::line() {
  out_ += '\n';
  return *this;
}

Markup& Markup::verbatim(std::string_view ours) {
  out_ += ours;
  return *this;
}

const std::string& Markup::str() const {
  if (!open_.empty()) throw InternalError("markup: <" + open_.back() + "> is not closed");
  return out_;
}

}  // namespace trainyard::reports
