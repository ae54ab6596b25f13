// Stacked bars, as percent of each group's baseline, with the seconds at their ends.
#include <algorithm>

#include "reports/draw/drawing.h"
#include "reports/draw/text_width.h"
#include "reports/format/number_text.h"

namespace trainyard::reports {

namespace {

constexpr double label_size = 12;
constexpr double row_height = 19;
constexpr double bar_height = 15;
constexpr double group_gap = 14;
constexpr double top = 14;
constexpr double axis_height = 26;
constexpr double room_for_seconds = 70;

double share(const Stack& stack, double seconds) {
  return 100 * seconds / stack.reference;
}

double widest_share(const Figure& figure) {
  double widest = 100;
  for (const Stack& stack : figure.stacks) widest = std::max(widest, share(stack, stack.total));
  return widest * 1.02;
}

double label_width(const Figure& figure) {
  double widest = 0;
  for (const Stack& stack : figure.stacks) {
    widest =
        std::max(widest, text_width(stack.group, label_size) * 1.1 + text_width(stack.label, label_size));
  }
  return std::min(widest + 40, stacks_width / 2);
}

void draw_stack(Markup& out, const Figure& figure, const Stack& stack, const Scale1D& x, double y) {
  double seconds = 0;
  for (std::size_t i = 0; i < stack.parts.size(); ++i) {
    const double from = x(share(stack, seconds));
    seconds += stack.parts[i];
    const double width = x(share(stack, seconds)) - from;
    if (width < 0.005) continue;
    out.open("rect", {{"class", "seg p-" + figure.parts[i].colour},
                      {"x", coordinate(from)},
                      {"y", coordinate(y)},
                      {"width", coordinate(width)},
                      {"height", coordinate(bar_height)}});
    out.leaf("title", {},
             stack.group + ", " + stack.label + ": " + figure.parts[i].name + " " +
                 for_table(stack.parts[i], 3) + " s (" + fixed(share(stack, stack.parts[i]), 0) +
                 " % of the baseline's epoch)");
    out.close();
  }
  draw_text(out, "pc", x(share(stack, stack.total)) + 8, y + 12, for_table(stack.total, 3) + " s");
}

}  // namespace

double stacks_height(const Figure& figure) {
  double height = top + axis_height;
  for (std::size_t i = 0; i < figure.stacks.size(); ++i) {
    height += row_height + (i > 0 && figure.stacks[i].group != figure.stacks[i - 1].group ? group_gap : 0);
  }
  return height + 8;
}

void draw_stacks(Markup& out, const Figure& figure) {
  const double left = label_width(figure);
  const Scale1D x{0, widest_share(figure), left, stacks_width - room_for_seconds, false};
  const double bottom = stacks_height(figure) - axis_height;
  for (const Tick& tick : ticks(x.low, x.high, 6, false)) {
    draw_rule(out, "g", x(tick.value), top - 6, x(tick.value), bottom);
    draw_text(out, "mid", x(tick.value), bottom + 16, tick.label + " %");
  }
  draw_rule(out, "parity", x(100), top - 6, x(100), bottom);
  double y = top;
  for (std::size_t i = 0; i < figure.stacks.size(); ++i) {
    const Stack& stack = figure.stacks[i];
    const bool first = i == 0 || stack.group != figure.stacks[i - 1].group;
    if (first && i > 0) y += group_gap;
    if (first) draw_text(out, "mn", 0, y + 12, stack.group);
    draw_text(out, "e", left - 10, y + 12, stack.label);
    draw_stack(out, figure, stack, x, y);
    y += row_height;
  }
}

}  // namespace trainyard::reports
