#include "reports/draw/assets.h"

#include <map>

#include "base/error.h"
#include "base/sha256.h"

namespace trainyard::reports {

namespace {

// "--name: value;" pairs of the first rule of the page's style sheet.
std::map<std::string, std::string> light_colours() {
  const std::string_view css = page_css();
  const std::string_view rule = css.substr(css.find('{') + 1, css.find('}') - css.find('{') - 1);
  std::map<std::string, std::string> colours;
  for (std::size_t at = rule.find("--"); at != std::string_view::npos; at = rule.find("--", at + 1)) {
    const std::size_t colon = rule.find(':', at);
    const std::size_t end = rule.find(';', colon);
    const std::size_t value = rule.find_first_not_of(' ', colon + 1);
    colours[std::string(rule.substr(at, colon - at))] = std::string(rule.substr(value, end - value));
  }
  return colours;
}

}  // namespace

std::string figure_style_with_colours() {
  const std::map<std::string, std::string> colours = light_colours();
  std::string css(figure_css());
  for (std::size_t at = css.find("var("); at != std::string::npos; at = css.find("var(", at)) {
    const std::size_t end = css.find(')', at);
    const auto found = colours.find(css.substr(at + 4, end - at - 4));
    if (found == colours.end())
      throw InternalError("figure.css uses a variable that page.css does not define");
    css.replace(at, end - at + 1, found->second);
  }
  return css;
}

std::string policy_hash(std::string_view content) {
  return "sha256-" + sha256_base64(content);
}

}  // namespace trainyard::reports
