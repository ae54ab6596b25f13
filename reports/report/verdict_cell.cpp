#include "reports/report/verdict_cell.h"

#include <algorithm>
#include <cmath>

#include "reports/format/number_text.h"
#include "reports/verdicts/differences.h"
#include "reports/verdicts/verdict_text.h"

namespace trainyard::reports {

namespace {

constexpr double picture_width = 120;
constexpr double middle = picture_width / 2;

// Interval and margin on one scale, zero in the middle: of every verdict that has an estimate.
Markup interval_picture(const Verdict& verdict) {
  const Change change = change_of(verdict, 0.95);
  const Interval margin = margin_as_change(verdict);
  const double reach = 1.25 * std::max(std::abs(margin.low), std::abs(margin.high));
  const double wanted = std::max({std::abs(change.interval.low), std::abs(change.interval.high), reach});
  // Few seeds give intervals that would hide margin and effect: the picture ends at four times what matters.
  const double extent = std::min(wanted, 4 * std::max(std::abs(change.value), reach));
  const auto at = [&](double value) { return middle + (middle - 5) * std::clamp(value / extent, -1.0, 1.0); };
  Markup out;
  out.open("svg", {{"class", "mini"},
                   {"viewBox", "0 0 120 12"},
                   {"preserveAspectRatio", "none"},
                   {"aria-hidden", "true"}});
  out.empty("rect", {{"class", "fm"},
                     {"x", coordinate(at(margin.low))},
                     {"y", "0"},
                     {"width", coordinate(at(margin.high) - at(margin.low))},
                     {"height", "12"}});
  out.empty("path", {{"class", "fz"}, {"d", "M60 0V12"}});
  out.empty("path", {{"class", "fl"},
                     {"d", "M" + coordinate(at(change.interval.low)) + " 6H" +
                               coordinate(at(change.interval.high))}});
  out.empty("rect", {{"class", "fd"},
                     {"x", coordinate(at(change.value) - 1.5)},
                     {"y", "2.5"},
                     {"width", "3"},
                     {"height", "7"}});
  out.close();
  return out;
}

std::string spoken(const Verdict& verdict) {
  std::string text = "n = " + std::to_string(verdict.n);
  if (verdict.p_value())
    text += ", p = " + p_text(verdict.p_value()) + " (Holm, " + verdict.hypothesis() + ")";
  text += ", margin " + margin_text(verdict);
  if (!verdict.reason.empty()) text += "; " + verdict.reason;
  for (const std::string& note : verdict.notes) text += "; " + note;
  return text;
}

}  // namespace

Markup verdict_cell(const Verdict* verdict) {
  Markup out;
  out.open("td");
  if (verdict == nullptr) {
    out.leaf("span", {{"class", "na"}}, "not defined").close();
    return out;
  }
  const Look& look = look_of(verdict->word);
  out.open("span", {{"class", std::string("v ") + look.style}, {"title", spoken(*verdict)}});
  out.leaf("b", {}, std::string(look.glyph) + " " + look.text);
  if (verdict->estimate) {
    out.open("i")
        .leaf("span", {}, effect_text(*verdict))
        .text(" ")
        .leaf("span", {}, interval_text(*verdict))
        .close();
    out.add(interval_picture(*verdict));
  } else {
    out.leaf("i", {}, verdict->reason);
  }
  for (const std::string& note : verdict->notes)
    if (note.starts_with(decided_at_look)) out.leaf("i", {}, note);
  out.close().close();
  return out;
}

}  // namespace trainyard::reports
