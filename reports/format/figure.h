// A figure as neutral data: what is drawn, not how. `svg` draws it for page and paper, `vega_lite` writes it
// for people who restyle.
//
// A new kind of figure is a struct in `Figure::picture`, its drawing (reports/draw/drawing.h) and its
// specification (reports/draw/vega_lite.cpp).
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "reports/format/table.h"

namespace trainyard::reports {

// A mean over seeds with its 95 % t interval; low and high are NaN where n < 2.
struct Point {
  double x = 0;
  double mean = 0;
  double low = 0;
  double high = 0;
  int n = 0;
};

// Colour is the arm, dash is the replica.
struct Series {
  std::string key;             // equal in all figures of a page, different for all series
  std::string label;           // "ddp rank 0"
  std::string short_label;     // under a bar: "rank 0"
  std::string colour;          // role: "single", "ddp", "mpddp", "extra1" …
  int dash = 0;                // 0 solid: single or average; r + 1: rank r
  std::vector<Point> points;   // by x
  std::optional<Point> final;  // what enters the verdict, in the strip at the right, or the bar
};

// What the curves are held against and nobody here measured: a polyline of (x, y); of bars only y counts. It
// is never allowed to squeeze the curves: where it lies far off, its label says its value instead.
struct Guide {
  std::string label;   // "published, single"
  std::string colour;  // role: "published", "ideal", "limit"
  std::vector<std::pair<double, double>> points;
};

struct Axis {
  std::string title;            // under the axis: "epoch"
  bool log = false;             // only y
  bool integers = false;        // only x: epochs, devices
  bool from_zero = false;       // the axis begins at zero
  std::optional<double> least;  // no value can be below, no value above: intervals are cut there
  std::optional<double> most;
};

// Curves over x, with the final values in a strip at the right.
struct Lines {
  Axis x;
  Axis y;
  std::vector<Series> series;
  bool markers = false;     // each point is marked, with its interval
  std::string final_label;  // under the strip: "last epoch"
  std::vector<Guide> guides;
};

// One bar per series: its final value.
struct Bars {
  std::vector<Series> series;
  std::vector<Guide> guides;
};

// A part of stacked bars; its colour stays its own where other parts are left out.
struct Part {
  std::string name;    // "Forward"
  std::string colour;  // role: "forward", "data" …
};

// One bar of a stacked figure: seconds by part.
struct Stack {
  std::string group;     // "mlp": stacks of one group stand together
  std::string label;     // "ddp"
  double reference = 0;  // seconds that count as 100 %: the group's baseline
  std::vector<double> parts;
  double total = 0;
};

// Stacked bars, as percent of each group's baseline.
struct Stacks {
  std::vector<Part> parts;  // in their order
  std::vector<Stack> stacks;
};

// A row of a forest plot: what an arm does in a cell.
struct EffectRow {
  std::string group;   // "MLP": rows of one group stand together
  std::string label;   // "ddp"
  std::string colour;  // role
};

// One effect with its margin, as a change of the metric. Not drawn, but said, where `on_scale` is false: it
// is in another unit than its column.
struct Effect {
  double value = 0;
  double low = 0, high = 0;                // 95 % interval
  double margin_low = 0, margin_high = 0;  // inside, a change counts as none
  std::string text;                        // "−43.2 %"
  std::string verdict;                     // "IMPROVES"
  std::string glyph;                       // "▲"
  bool on_scale = true;
};

// A column of a forest plot: one metric, an effect or nothing for each row.
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
  std::string subject;  // "mlp": title of the file that stands alone
  std::string title;    // "Training accuracy"
  std::string unit;     // "%", "s", "log scale"
  std::variant<Lines, Bars, Stacks, Effects> picture;
  std::string caption;
  std::vector<std::string> remarks;  // sentences that the figure supports, one an arm: "ddp is slower than …"
  std::string sql;                   // the query behind it
  Table data;
  std::string missing;  // why there is nothing to draw: "not defined for this model"
};

// "mlp · Training accuracy", with " · " as what stands between; of a figure without a subject the title
// alone.
inline std::string whole_title(const Figure& figure, const std::string& between) {
  return figure.subject.empty() ? figure.title : figure.subject + between + figure.title;
}

}  // namespace trainyard::reports
