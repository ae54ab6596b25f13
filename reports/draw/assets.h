// The page's static parts, embedded at build time from page.css, figure.css and page.js.
#pragma once

#include <string>
#include <string_view>

namespace trainyard::reports {

std::string_view page_css();    // the page, with the colours as variables, light, dark and print
std::string_view figure_css();  // strokes and fills of figures, in terms of those variables
std::string_view page_js();

// `figure_css` with the light colours of `page_css` in place of the variables: for files that stand alone.
std::string figure_style_with_colours();

// The light colour of a role of figures: "ddp" → "#0072b2". InternalError where there is none.
std::string light_colour(const std::string& role);

// "sha256-…" of a style or script element, as a content security policy wants it.
std::string policy_hash(std::string_view content);

}  // namespace trainyard::reports
