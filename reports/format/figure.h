// A figure as neutral data, without style. `svg` draws it for page and paper.
//
// A new kind of figure needs a struct in `Figure::picture` and a drawing (reports/draw/drawing.h).
#pragma once

#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "reports/document/report.h"
#include "reports/format/table.h"

namespace trainyard::reports {

// A series. Colour is the arm, dash is the replica.
struct Series {
  std::string key;             // unique per series, equal in all figures of a page
  std::string label;           // "ddp rank 0"
  std::string short_label;     // under a bar: "rank 0"
  std::string colour;          // role: "single", "ddp", "mpddp", "extra1" …
  int dash = 0;                // 0 solid: an arm; r + 1: its rank r
  std::vector<Point> points;   // by x
  std::optional<Point> final;  // value of the verdict: in the strip at the right, or the bar
};

// A reference line that is not measured here: a polyline of (x, y). Bars use only y. It must not squeeze the
// curves: a guide far outside the axis is not drawn, and its label has the value.
struct Guide {
  std::string label;   // "published, single"
  std::string colour;  // role: "published", "ideal", "limit"
  std::vector<std::pair<double, double>> points;
};

struct Axis {
  std::string title;  // under the axis: "epoch"
  bool log = false;
  bool integers = false;                      // only x: epochs, devices
  std::vector<double> at = {};                // only x: the values that have a tick; empty: round values
  bool from_zero = false;                     // the axis starts at zero
  double least = -INFINITY, most = INFINITY;  // limits of the metric: intervals are cut there
};

// Curves over x, with the final values in a strip at the right.
struct Lines {
  Axis x;
  Axis y;
  std::vector<Series> series;
  bool markers = false;     // each point is marked, with its interval
  std::string final_label;  // under the strip: "last epoch"
  std::vector<Guide> guides;
  // The margin of differences, from low to high: a shaded strip with a line at zero. A difference inside counts
  // as no change.
  std::optional<std::pair<double, double>> margin = {};
};

// Adjacent bars with a common name below: those of one model.
struct BarGroup {
  std::string name;
  std::size_t bars = 0;
};

// One bar per series: its final value. Values of ranks are points on the bar of their arm.
struct Bars {
  std::vector<Series> series;
  std::vector<Guide> guides;
  std::vector<BarGroup> groups = {};  // from left to right, of all bars; empty: no groups
};

// A part of stacked bars. Its colour does not depend on the other parts.
struct Part {
  std::string name;    // "Forward"
  std::string colour;  // role: "forward", "data" …
};

// One bar of a stacked figure: seconds by part.
struct Stack {
  std::string group;     // "mlp": stacks of one group are adjacent
  std::string label;     // "ddp"
  double reference = 0;  // 100 %: seconds of the group's baseline
  std::vector<double> parts;
  double total = 0;
};

// Stacked bars, in percent of each group's baseline.
struct Stacks {
  std::vector<Part> parts;  // from left to right
  std::vector<Stack> stacks;
};

// What a rank does from `begin` to `end`, in the unit of the figure.
struct Span {
  std::size_t part = 0;  // of Spans::parts
  double begin = 0;
  double end = 0;
  std::string label;   // in the bar, if it fits: a micro-batch
  bool waits = false;  // a low bar
};

struct SpanRow {
  std::string group;  // "pipeline": rows of one group are adjacent
  std::string label;  // "stage 0"
  std::vector<Span> spans;
};

// A timeline: one row per rank, on a common axis from 0.
struct Spans {
  std::vector<Part> parts;
  std::vector<SpanRow> rows;
};

// A row of a forest plot: one arm of one cell.
struct EffectRow {
  std::string group;   // "MLP": rows of one group are adjacent
  std::string label;   // "ddp"
  std::string colour;  // role
};

// One effect with its margin, as a change of the metric. If `on_scale` is false, its unit is not that of the
// column: it is printed, but not drawn.
struct Effect {
  double value = 0;
  double low = 0, high = 0;                // 95 % interval
  std::vector<double> ticks = {};          // ends of the interval that decides, if it is another
  double margin_low = 0, margin_high = 0;  // a change inside counts as no change
  std::string text;                        // "−43.2 %"
  std::string verdict;                     // "IMPROVES"
  std::string glyph;                       // "▲"
  bool on_scale = true;
};

// A column of a forest plot: one metric, with an effect or nothing per row.
struct EffectColumn {
  std::string title;  // "Validation loss"
  std::string unit;   // "%, lower is better"
  std::vector<std::optional<Effect>> effects;
};

// A forest plot.
struct Effects {
  std::vector<EffectRow> rows;
  std::vector<EffectColumn> columns;
};

struct Figure {
  std::string slug;     // file name and anchor: "mlp-train-accuracy"
  std::string subject;  // "mlp": added to the title in single files
  std::string title;    // "Training accuracy"
  std::string unit;     // "%", "s", "log scale"
  std::variant<Lines, Bars, Stacks, Spans, Effects> picture;
  std::string caption;
  std::string strip_caption;         // added to the caption if the final values are drawn at the right
  std::string intervals;             // how the caption starts: what means and intervals are; may be empty
  bool own_legend = false;           // its series are not in the legend of the page
  std::vector<std::string> remarks;  // one text per arm: "MLP, ddp: an epoch takes …"
  std::string sql;                   // query for the data
  Table data;
  std::string missing;  // why there is nothing to draw: "not defined for this model"
};

// "mlp · Training accuracy" for `between` " · ". Without a subject, only the title.
inline std::string whole_title(const Figure& figure, const std::string& between) {
  return figure.subject.empty() ? figure.title : figure.subject + between + figure.title;
}

// The figure without the series of single ranks.
inline Figure without_ranks(Figure figure) {
  const auto is_rank = [](const Series& series) { return series.dash > 0; };
  if (auto* lines = std::get_if<Lines>(&figure.picture)) std::erase_if(lines->series, is_rank);
  if (auto* bars = std::get_if<Bars>(&figure.picture)) std::erase_if(bars->series, is_rank);
  return figure;
}

}  // namespace trainyard::reports
