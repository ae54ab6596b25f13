// A figure as neutral data: what is drawn, not how. Made by `panels` and `time_breakdown`, drawn by `svg`;
// any other renderer (paper, terminal, a grammar of graphics) can stand beside it.
#pragma once

#include <optional>
#include <string>
#include <vector>

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

struct Axis {
  bool log = false;
  bool integers = false;
};

struct Table {
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;
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

enum class FigureKind { lines, bars, stacks };

struct Figure {
  std::string slug;  // file name and anchor: "mlp-train-accuracy"
  FigureKind kind = FigureKind::lines;
  std::string subject;  // "mlp": title of the file that stands alone
  std::string title;    // "Training accuracy"
  std::string unit;     // "%", "s", "log scale"
  Axis x;
  Axis y;
  std::vector<Series> series;
  std::string final_label;  // under the strip: "last epoch"
  std::vector<Part> parts;  // of stacks, in their order
  std::vector<Stack> stacks;
  std::string caption;
  std::string sql;  // the query behind it
  Table data;
  std::string missing;  // why there is nothing to draw: "not defined for this model"
};

}  // namespace trainyard::reports
