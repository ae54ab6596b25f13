// A verdict in words and numbers, the same on the page, in tables and on a terminal.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "experiments/design/compare.h"
#include "reports/verdicts/verdict.h"

namespace trainyard::reports {

// "−43.2 %", "+0.10 pp", "+0.0012 absolute"; "–" without pairs.
std::string effect_text(const Verdict& verdict);
// "[−43.6, −42.8]": the interval of this level, without its unit; "–" where there is none.
std::string interval_text(const Verdict& verdict, double level = 0.95);
// "a factor of 1.05", "±0.5 pp", "±0.005".
std::string margin_text(const Verdict& verdict);
// "1.81 × as fast", for times; empty otherwise.
std::string speed_text(const Verdict& verdict);
std::string p_with_hypothesis(std::optional<double> p, const std::string& hypothesis);  // "0.012 (inside)"
std::string p_text(std::optional<double> p);  // "0.012", "< 0.0001", "–" where nothing was tested

struct Look {
  Word word;
  const char* style;  // class
  const char* glyph;
  const char* text;
};
std::span<const Look> looks();  // in the order of a legend
const Look& look_of(Word word);

// "margin ±0.5 pp"
std::string margin_of(const Metric& metric, const experiments::Margins& margins);

}  // namespace trainyard::reports
