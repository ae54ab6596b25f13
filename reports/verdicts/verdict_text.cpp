#include "reports/verdicts/verdict_text.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "reports/format/number_text.h"

namespace trainyard::reports {

namespace {

constexpr std::array<Look, 9> all_looks{{{Word::improves, "improves", "▲", "Improves"},
                                         {Word::no_change, "no-change", "=", "No change"},
                                         {Word::deteriorates, "deteriorates", "▼", "Deteriorates"},
                                         {Word::inconclusive, "inconclusive", "?", "Inconclusive"},
                                         {Word::interim, "interim", "…", "Interim"},
                                         {Word::not_timed, "not-timed", "–", "Not timed"},
                                         {Word::no_data, "no-data", "∅", "No data"},
                                         {Word::not_comparable, "not-comparable", "≠", "Not comparable"},
                                         {Word::broken, "broken", "✗", "Broken"}}};

// Decimals that show `width` to two significant digits, within limits.
int decimals_for(double width, int least, int most) {
  if (!(width > 0) || !std::isfinite(width)) return least;
  return std::clamp(1 - static_cast<int>(std::floor(std::log10(width))), least, most);
}

// Decimals of a change: the interval's half width decides where there is one, the unit limits.
int decimals_of(const Verdict& verdict) {
  const Interval interval = verdict.estimate ? change_of(verdict, 0.95).interval : Interval{};
  const double half = (interval.high - interval.low) / 2;
  switch (verdict.scale) {
    case Scale::log_ratio:
      return decimals_for(half * 10, 1, 2);
    case Scale::points:
    case Scale::decibels:
      return decimals_for(half, 2, 3);
    case Scale::absolute:
      return decimals_for(std::max(half, verdict.margin / 5), 2, 6);
  }
  return 2;
}

// Accuracies are percentages, BLEU is points of a scale to 100.
std::string points_of(const Verdict& verdict) {
  return find_metric(verdict.metric).kind == MetricKind::bleu ? " points" : " pp";
}

}  // namespace

std::string effect_text(const Verdict& verdict) {
  if (!verdict.estimate && !verdict.difference) return "–";
  const double change =
      verdict.estimate ? change_of(verdict, 0.95).value : as_change(verdict.scale, *verdict.difference);
  const std::string number = signed_fixed(change, decimals_of(verdict));
  switch (verdict.scale) {
    case Scale::log_ratio:
      return number + " %";
    case Scale::points:
      return number + points_of(verdict);
    case Scale::decibels:
      return number + " dB";
    case Scale::absolute:
      return number + " absolute";
  }
  return number;
}

std::string interval_text(const Verdict& verdict, double level) {
  if (!verdict.estimate) return "–";
  const Interval interval = change_of(verdict, level).interval;
  const int decimals = decimals_of(verdict);
  return "[" + signed_fixed(interval.low, decimals) + ", " + signed_fixed(interval.high, decimals) + "]";
}

std::string margin_text(const Verdict& verdict) {
  switch (verdict.scale) {
    case Scale::log_ratio:
      return "a factor of " + plain_number(std::exp(verdict.margin), 5);
    case Scale::points:
      return "±" + plain_number(verdict.margin, 4) + points_of(verdict);
    case Scale::decibels:
      return "±" + plain_number(verdict.margin, 2) + " dB";
    case Scale::absolute:
      return "±" + plain_number(verdict.margin, 4);
  }
  return "";
}

std::string speed_text(const Verdict& verdict) {
  if (verdict.scale != Scale::log_ratio || !verdict.estimate) return "";
  return fixed(std::exp(verdict.estimate->mean), 2) + " × as fast";
}

std::string p_with_hypothesis(std::optional<double> p, const std::string& hypothesis) {
  if (!p) return p_text(p);
  return p_text(p) + " (" + hypothesis.substr(0, hypothesis.find(' ')) + ")";
}

std::string p_text(std::optional<double> p) {
  if (!p) return "–";
  return *p < 0.0001 ? "< 0.0001" : fixed(*p, *p < 0.1 ? 4 : 3);
}

std::span<const Look> looks() {
  return all_looks;
}

const Look& look_of(Word word) {
  return *std::ranges::find(all_looks, word, &Look::word);
}

std::string margin_of(const Metric& metric, const experiments::Margins& margins) {
  switch (metric.kind) {
    case MetricKind::accuracy:
      return "margin ±" + plain_number(margins.accuracy_points) + " pp";
    case MetricKind::loss:
      return "margin × " + plain_number(margins.loss.ratio);
    case MetricKind::time:
    case MetricKind::energy:
      return "margin × " + plain_number(margins.time);
    case MetricKind::perplexity:
      return "margin × " + plain_number(margins.loss.ratio);
    case MetricKind::psnr:
      return "margin ±" + plain_number(psnr_margin(margins.loss), 2) + " dB";
    case MetricKind::bleu:
      return "margin ±" + plain_number(margins.accuracy_points) + " points";
  }
  return "";
}

}  // namespace trainyard::reports
