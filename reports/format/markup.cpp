#include "reports/format/markup.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/text.h"

namespace trainyard::reports {

namespace {

void append_escaped(std::string& out, char character) {
  using Entity = std::pair<char, std::string_view>;
  static constexpr std::array<Entity, 5> entities{
      {{'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}, {'\'', "&#39;"}}};
  const auto entity = std::ranges::find(entities, character, &Entity::first);
  const auto byte = static_cast<unsigned char>(character);
  const bool allowed = (byte >= 0x20 && byte != 0x7f) || character == '\n' || character == '\t';
  if (entity != entities.end())
    out += entity->second;
  else if (allowed)
    out += character;
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const Character character = first_character(text);
    const bool allowed = character.valid && character.code != 0xfffe && character.code != 0xffff;  // in XML
    if (!allowed)
      out += "\xef\xbf\xbd";
    else if (character.bytes == 1)
      append_escaped(out, text.front());
    else
      out += text.substr(0, character.bytes);
    text.remove_prefix(allowed ? character.bytes : 1);
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
