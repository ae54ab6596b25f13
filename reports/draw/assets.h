// The page's static parts, embedded at build time from page.css, figure.css and page.js.
#pragma once

#include <string>
#include <string_view>

namespace trainyard::reports {

std::string_view page_css();    // the page, with light, dark and print colours as variables
std::string_view figure_css();  // strokes and fills of figures, with these variables
std::string_view page_js();

// `figure_css` with the light colours of `page_css` instead of variables, for single files.
std::string figure_style_with_colours();

// "sha256-…" of a style or script element for a content security policy.
std::string policy_hash(std::string_view content);

}  // namespace trainyard::reports
