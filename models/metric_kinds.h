// What the numbers of a metric are, one row per kind: their unit, direction, limits and margin. Verdicts,
// tables and figures ask a row and never for a kind by name. No LibTorch.
#pragma once

#include <limits>
#include <string>
#include <string_view>

namespace trainyard::models {

// How two values are compared, and which margin of `[compare]` decides.
enum class Margin {
  points,      // their difference, against accuracy_points
  loss,        // their ratio, or if they are small their difference, against loss
  loss_ratio,  // their ratio, against that of the loss
  decibels,    // their difference, against the loss's ratio on a logarithmic scale
  cost         // their ratio, against time
};

struct MetricKind {
  std::string_view name{};        // "accuracy"
  std::string_view unit{};        // of stored values: "s"; "fraction"
  std::string_view shown_unit{};  // "%"
  double scale = 1;               // from a stored value to a shown one
  bool higher_is_better = false;
  Margin margin = Margin::loss;
  double least = 0, most = std::numeric_limits<double>::infinity();  // of stored values
  bool logarithmic = false;                                          // a figure may have a logarithmic axis
  bool depends_on_others = false;  // measured while the clock runs: other processes change it
  // A cost in sentences: "the times of ddp do not count", "the energy of ddp does not count".
  std::string_view measured{};
  bool plural = true;
  std::string_view over_ranks = "average";  // what the value of several ranks is
  std::string_view about{};                 // a sentence for figures
  std::string_view about_ranks{};           // one for figures with several ranks

  constexpr bool is_fraction() const { return scale != 1; }
  // A training costs it. Comparable only on equal machines. Defined for diverged runs too.
  constexpr bool is_cost() const { return margin == Margin::cost; }
  constexpr bool is_bounded() const { return most < std::numeric_limits<double>::infinity(); }
  // " %", " dB" or nothing, behind a shown number.
  std::string suffix() const { return shown_unit.empty() ? "" : " " + std::string(shown_unit); }
};

namespace metric_kinds {

inline constexpr MetricKind accuracy{.name = "accuracy",
                                     .unit = "fraction",
                                     .shown_unit = "%",
                                     .scale = 100,
                                     .higher_is_better = true,
                                     .margin = Margin::points,
                                     .most = 1};
inline constexpr MetricKind loss{.name = "loss", .logarithmic = true};
// An exponential of the loss.
inline constexpr MetricKind perplexity{
    .name = "perplexity", .margin = Margin::loss_ratio, .logarithmic = true};
inline constexpr MetricKind psnr{.name = "psnr",
                                 .unit = "dB",
                                 .shown_unit = "dB",
                                 .higher_is_better = true,
                                 .margin = Margin::decibels,
                                 .least = -std::numeric_limits<double>::infinity()};
// A score from 0 to 100.
inline constexpr MetricKind bleu{
    .name = "bleu", .higher_is_better = true, .margin = Margin::points, .most = 100};
inline constexpr MetricKind r2{.name = "r2",
                               .unit = "fraction",
                               .shown_unit = "%",
                               .scale = 100,
                               .higher_is_better = true,
                               .margin = Margin::points,
                               .least = -std::numeric_limits<double>::infinity(),
                               .most = 1};
inline constexpr MetricKind time{
    .name = "time",
    .unit = "s",
    .shown_unit = "s",
    .margin = Margin::cost,
    .depends_on_others = true,
    .measured = "times",
    .over_ranks = "slowest rank",
    .about_ranks = "The time of several ranks is that of the slowest rank of each epoch."};
inline constexpr MetricKind processor_time{
    .name = "processor-time",
    .unit = "s",
    .shown_unit = "s",
    .margin = Margin::cost,
    .measured = "times",
    .over_ranks = "busiest rank",
    .about = "Seconds that the processors worked for the rank that used most. Waiting is not in it."};
inline constexpr MetricKind energy{.name = "energy",
                                   .unit = "J",
                                   .shown_unit = "J",
                                   .margin = Margin::cost,
                                   .depends_on_others = true,
                                   .measured = "energy",
                                   .plural = false,
                                   .over_ranks = "all devices",
                                   .about = "Sum over all devices, training only."};

}  // namespace metric_kinds

}  // namespace trainyard::models
