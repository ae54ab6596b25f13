// Drawings with one row per arm or rank: stacked bars, timelines and forest plots. On the page all labels are beside their rows. In
// a narrow drawing the groups have rows of their own, and the columns of a forest plot are below each other.
#include <algorithm>
#include <optional>
#include <span>

#include <fmt/format.h>

#include "reports/draw/drawing.h"
#include "reports/draw/scale.h"
#include "reports/draw/svg.h"
#include "reports/format/number_text.h"

namespace trainyard::reports {

namespace {

// Sizes on the page. In sized drawings they grow with the font.
constexpr double usual_row_font = 12;
constexpr double row_height = 19;
constexpr double line_height = 15;

struct RowName {
  std::string group;  // rows of one group are adjacent
  std::string label;
};

struct RowPlace {
  double top = 0;                  // of a row with one line of text, in the middle of the label's lines
  double group_top = 0;            // of the first line of `group`
  std::vector<std::string> group;  // only at the first row of a group
  std::vector<std::string> label;
};

// The labels at the left of the rows. Tops are relative to the first row.
struct Rows {
  double scale = 1;
  double left = 0;  // left end of the plot
  double gap = 0;   // between labels and plot
  double height = 0;
  std::vector<RowPlace> places;
};

struct Gaps {
  double labels = 0;  // between labels and plot
  double groups = 0;
};

// `left`: left end of the plot on the page.
Rows rows_of(const std::vector<RowName>& names, double left, const Gaps& gaps, const DrawingStyle& style) {
  const double font = style.text(usual_row_font);
  Rows rows{.scale = font / usual_row_font, .left = left, .places = {}};
  rows.gap = gaps.labels * rows.scale;
  bool headings = false;
  if (style.sized()) {
    double group = 0;
    double label = 0;
    for (const RowName& name : names) {
      group = std::max(group, text_width(name.group, font, Weight::bold));
      label = std::max(label, text_width(name.label, font));
    }
    headings = group + font + label + rows.gap > 0.4 * style.width;
    rows.left = rows.gap + (headings ? std::min(label, 0.3 * style.width - rows.gap) : group + font + label);
  }
  double y = 0;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto& [group, label] = names[i];
    RowPlace& place = rows.places.emplace_back();
    const bool first = i == 0 || group != names[i - 1].group;
    if (first && i > 0) y += gaps.groups * rows.scale;
    if (headings && first) {
      place.group = text_lines(group, style.width, font, Weight::bold);
      place.group_top = y;
      y += line_height * rows.scale * static_cast<double>(place.group.size());
    }
    place.label = headings ? text_lines(label, rows.left - rows.gap, font) : std::vector<std::string>{label};
    const double more =
        line_height * rows.scale * static_cast<double>(std::max<std::size_t>(1, place.label.size()) - 1);
    place.top = y + more / 2;
    if (!headings && first) {
      place.group = {group};
      place.group_top = place.top;
    }
    y += row_height * rows.scale + more;
  }
  rows.height = y;
  return rows;
}

// `top`: of the first row. `baseline`: of a text below the top of its row.
void draw_labels(Markup& out, const Rows& rows, std::size_t row, double top, double baseline) {
  const RowPlace& place = rows.places[row];
  const double line = line_height * rows.scale;
  draw_lines_of_text(out, "mn", 0, top + place.group_top + baseline, line, place.group);
  const double above = line * static_cast<double>(std::max<std::size_t>(1, place.label.size()) - 1) / 2;
  draw_lines_of_text(out, "e", rows.left - rows.gap, top + place.top + baseline - above, line, place.label);
}

// Ticks of a horizontal axis; `unit` follows each label.
std::vector<Tick> ticks_beside(const Scale1D& x, int wanted, const char* unit, const DrawingStyle& style) {
  const MakeTicks make = [&](int number) {
    std::vector<Tick> all = ticks(x.low, x.high, number, false);
    for (Tick& tick : all) tick.label += unit;
    return all;
  };
  return style.sized() ? spaced_ticks(wanted, make, touching_beside(x, style.font, style.width))
                       : make(wanted);
}

// Rows of bars above an axis: stacked bars, and timelines.

constexpr double bar_height = 15;
constexpr double rows_top = 14;
constexpr double bars_axis_height = 26;
constexpr double bar_baseline = 12;
constexpr double room_for_seconds = 70;
constexpr double below_bars = 8;

struct BarRows {
  double width = page_width;
  double height = 0;
  double bottom = 0;
  double font = 0;
  Rows rows;
  Scale1D x;
  std::vector<Tick> ticks;
};

// `high`: end of the axis. `room`: at the right of the bars. `unit` follows the labels of the axis.
BarRows bar_rows(const std::vector<RowName>& names, double high, double room, const char* unit,
                 const DrawingStyle& style) {
  BarRows layout;
  layout.width = style.width_or(page_width);
  layout.font = style.text(usual_row_font);
  double widest = 0;
  for (const RowName& name : names)
    widest = std::max(widest,
                      text_width(name.group, usual_row_font) * 1.1 + text_width(name.label, usual_row_font));
  layout.rows = rows_of(names, std::min(widest + 40, page_width / 2), {10, 14}, style);
  const double scale = layout.rows.scale;
  layout.bottom = rows_top * scale + layout.rows.height + below_bars;
  layout.height = layout.bottom + bars_axis_height * scale;
  layout.x = {0, high, layout.rows.left, layout.width - room, false};
  layout.ticks = ticks_beside(layout.x, 6, unit, style);
  return layout;
}

void draw_axis(Markup& out, const BarRows& layout) {
  for (const Tick& tick : layout.ticks) {
    const double x = layout.x(tick.value);
    draw_rule(out, "g", x, rows_top * layout.rows.scale - 6, x, layout.bottom);
    draw_text(out, "mid", middle_inside(x, tick.label, layout.font, layout.width),
              layout.bottom + 16 * layout.rows.scale, tick.label);
  }
}

// Stacked bars, in percent of each group's baseline, with the seconds at their ends.

double share(const Stack& stack, double seconds) {
  return 100 * seconds / stack.reference;
}

double widest_share(const Stacks& figure) {
  double widest = 100;
  for (const Stack& stack : figure.stacks) widest = std::max(widest, share(stack, stack.total));
  return widest * 1.02;
}

std::string seconds_of(const Stack& stack) {
  return for_table(stack.total, 3) + " s";
}

BarRows stack_layout(const Stacks& figure, const DrawingStyle& style) {
  const double font = style.text(usual_row_font);
  std::vector<RowName> names;
  double seconds = 0;
  for (const Stack& stack : figure.stacks) {
    names.push_back({stack.group, stack.label});
    seconds = std::max(seconds, text_width(seconds_of(stack), font));
  }
  const double room = style.sized() ? seconds + 10 * font / usual_row_font : room_for_seconds;
  return bar_rows(names, widest_share(figure), room, " %", style);
}

void draw_stack(Markup& out, const Stacks& figure, const Stack& stack, const BarRows& layout, double y) {
  double seconds = 0;
  for (std::size_t i = 0; i < stack.parts.size(); ++i) {
    const double from = layout.x(share(stack, seconds));
    seconds += stack.parts[i];
    const double width = layout.x(share(stack, seconds)) - from;
    if (width < 0.005) continue;
    draw_rectangle(out, "seg p-" + figure.parts[i].colour, from, y, width, bar_height * layout.rows.scale,
                   fmt::format("{}, {}: {} {} s ({} % of the baseline's epoch)", stack.group, stack.label,
                               figure.parts[i].name, for_table(stack.parts[i], 3),
                               fixed(share(stack, stack.parts[i]), 0)));
  }
  draw_text(out, "pc", layout.x(share(stack, stack.total)) + 8, y + bar_baseline * layout.rows.scale,
            seconds_of(stack));
}

void draw_stacks(Markup& out, const Stacks& figure, const BarRows& layout) {
  const double scale = layout.rows.scale;
  const double top = rows_top * scale;
  draw_axis(out, layout);
  draw_rule(out, "parity", layout.x(100), top - 6, layout.x(100), layout.bottom);
  for (std::size_t i = 0; i < figure.stacks.size(); ++i) {
    draw_labels(out, layout.rows, i, top, bar_baseline * scale);
    draw_stack(out, figure, figure.stacks[i], layout, top + layout.rows.places[i].top);
  }
}

}  // namespace

Drawing drawing_of(const Figure&, const Stacks& stacks, const DrawingStyle& style) {
  const BarRows layout = stack_layout(stacks, style);
  Drawing drawing{.width = layout.width, .height = layout.height, .wide = true};
  for (const Part& part : stacks.parts) drawing.legend.push_back({part.name, "p-" + part.colour, true});
  for (const Stack& stack : stacks.stacks)
    drawing.spoken += fmt::format("; {} {} {} s", stack.group, stack.label, for_table(stack.total, 3));
  drawing.draw = [&stacks, layout](Markup& out) { draw_stacks(out, stacks, layout); };
  return drawing;
}

// Timelines: one row per rank. Bars of waiting and of messages are low.

namespace {

constexpr double low_bar_height = 5;

void draw_span(Markup& out, const Figure& figure, const Spans& spans, const SpanRow& row, const Span& span,
               const BarRows& layout, double y) {
  const double scale = layout.rows.scale;
  const double from = layout.x(span.begin);
  const double width = layout.x(span.end) - from;
  if (width < 0.05) return;
  const double height = (span.waits ? low_bar_height : bar_height) * scale;
  const Part& part = spans.parts[span.part];
  const std::string micro_batch = span.label.empty() ? "" : " of micro-batch " + span.label;
  draw_rectangle(out, (width < 3 ? "p-" : "seg p-") + part.colour, from,
                 y + (bar_height * scale - height) / 2, width, height,
                 fmt::format("{}, {}: {}{}, {} to {} {}", row.group, row.label, part.name, micro_batch,
                             for_table(span.begin), for_table(span.end), figure.unit));
  if (!span.waits && text_width(span.label, layout.font) + 6 * scale < width)
    draw_text(out, "pc mid", from + width / 2, y + bar_baseline * scale, span.label);
}

}  // namespace

Drawing drawing_of(const Figure& figure, const Spans& spans, const DrawingStyle& style) {
  std::vector<RowName> names;
  double high = 0;
  for (const SpanRow& row : spans.rows) {
    names.push_back({row.group, row.label});
    for (const Span& span : row.spans) high = std::max(high, span.end);
  }
  const BarRows layout = bar_rows(names, high, 10, (" " + figure.unit).c_str(), style);
  Drawing drawing{.width = layout.width, .height = layout.height, .wide = true};
  for (const Part& part : spans.parts) drawing.legend.push_back({part.name, "p-" + part.colour, true});
  drawing.draw = [&figure, &spans, layout](Markup& out) {
    draw_axis(out, layout);
    const double top = rows_top * layout.rows.scale;
    for (std::size_t i = 0; i < spans.rows.size(); ++i) {
      draw_labels(out, layout.rows, i, top, bar_baseline * layout.rows.scale);
      for (const Span& span : spans.rows[i].spans)
        draw_span(out, figure, spans, spans.rows[i], span, layout, top + layout.rows.places[i].top);
    }
  };
  return drawing;
}

// Forest plots: one row per cell and arm, one column with its own axis per metric. The margin is shaded.

namespace {

constexpr double above_title = 12;
constexpr double below_unit = 10;
constexpr double tick_reach = 4;  // of the interval that decides, up and down
constexpr double forest_axis_height = 24;
constexpr double forest_baseline = 13.5;
constexpr double column_gap = 26;
constexpr double block_gap = 8;
constexpr double least_axis = 9;  // times the font size, if columns are beside each other

struct Column {
  const EffectColumn* data = nullptr;
  std::vector<std::string> title;
  std::vector<std::string> unit;
  double title_left = 0;
  Scale1D x;
  std::vector<Tick> ticks;
  double text_left = 0;  // left edge of the printed effects
};

// Columns beside each other, with the labels of the rows.
struct Block {
  double top = 0;
  double head = 0;  // height of titles and units
  std::vector<Column> columns;
};

struct ForestLayout {
  double width = page_width;
  double height = 0;
  double font = 0;
  Rows rows;
  std::vector<Block> blocks;
};

double text_room(const EffectColumn& column, double font) {
  double widest = 0;
  for (const std::optional<Effect>& effect : column.effects) {
    if (effect) widest = std::max(widest, text_width(effect->glyph + " " + effect->text, font));
  }
  return widest + 10 * font / usual_row_font;
}

// An axis over effects, margins and intervals. Intervals extend it on each side by at most the extent of
// effects and margins, so one wide interval does not squeeze all others.
Scale1D axis_of(const EffectColumn& column, double left, double right) {
  double low = 0;
  double high = 0;
  double least = 0;
  double most = 0;
  for (const std::optional<Effect>& effect : column.effects) {
    if (!effect || !effect->on_scale) continue;
    low = std::min({low, effect->value, effect->margin_low});
    high = std::max({high, effect->value, effect->margin_high});
    least = std::min(least, effect->low);
    most = std::max(most, effect->high);
    for (const double tick : effect->ticks) least = std::min(least, tick), most = std::max(most, tick);
  }
  const double extent = high > low ? high - low : 1;
  low = std::min(low, std::max(least, low - extent)) - 0.04 * extent;
  high = std::max(high, std::min(most, high + extent)) + 0.04 * extent;
  return {low, high, left, right, false};
}

double forest_label_width(const Effects& figure) {
  double group = 0;
  double label = 0;
  for (const EffectRow& row : figure.rows) {
    group = std::max(group, text_width(row.group, usual_row_font) * 1.12);
    label = std::max(label, text_width(row.label, usual_row_font));
  }
  return std::min(group + label + 34, page_width / 3);
}

double column_width(const ForestLayout& layout, std::size_t count) {
  const auto columns = static_cast<double>(count);
  return (layout.width - layout.rows.left - column_gap * layout.rows.scale * (columns - 1)) / columns;
}

// All columns on the page. In a sized drawing as many as leave space for each axis, at least one.
std::size_t columns_beside(const Effects& figure, const ForestLayout& layout, const DrawingStyle& style) {
  std::size_t count = figure.columns.size();
  double room = 0;
  for (const EffectColumn& column : figure.columns) room = std::max(room, text_room(column, layout.font));
  while (style.sized() && count > 1 && column_width(layout, count) - room < least_axis * layout.font) --count;
  return count;
}

Block block_of(std::span<const EffectColumn> columns, const ForestLayout& layout, double width,
               const DrawingStyle& style) {
  const double scale = layout.rows.scale;
  Block block;
  double left = layout.rows.left;
  std::size_t lines = 0;
  for (const EffectColumn& data : columns) {
    const double right = left + width;
    Column& column = block.columns.emplace_back();
    column.data = &data;
    column.text_left = right - text_room(data, layout.font);
    column.x = axis_of(data, left, column.text_left - 10 * scale);
    column.ticks = ticks_beside(column.x, 4, "", style);
    column.title = {data.title};
    column.unit = {data.unit};
    column.title_left = left;
    if (style.sized()) {
      column.title_left = columns.size() == 1 ? 0 : left;
      column.title = text_lines(data.title, right - column.title_left, layout.font, Weight::bold);
      column.unit = text_lines(data.unit, right - column.title_left, layout.font);
    }
    lines = std::max(lines, column.title.size() + column.unit.size());
    left = right + column_gap * scale;
  }
  block.head = scale * (line_height * static_cast<double>(lines) + below_unit);
  return block;
}

ForestLayout forest_layout(const Effects& figure, const DrawingStyle& style) {
  ForestLayout layout;
  layout.width = style.width_or(page_width);
  layout.font = style.text(usual_row_font);
  std::vector<RowName> names;
  for (const EffectRow& row : figure.rows) names.push_back({row.group, row.label});
  layout.rows = rows_of(names, forest_label_width(figure), {12, 8}, style);
  const double scale = layout.rows.scale;
  const std::size_t beside = columns_beside(figure, layout, style);
  const std::span<const EffectColumn> columns(figure.columns);
  for (std::size_t first = 0; first < columns.size(); first += beside) {
    const std::size_t count = std::min(beside, columns.size() - first);
    Block block = block_of(columns.subspan(first, count), layout, column_width(layout, beside), style);
    block.top = layout.height + (first > 0 ? block_gap * scale : 0);
    layout.height = block.top + block.head + layout.rows.height + forest_axis_height * scale;
    layout.blocks.push_back(std::move(block));
  }
  return layout;
}

void draw_arrow(Markup& out, double x, double y, double direction) {
  out.empty("path", {{"class", "d"},
                     {"d", "M" + coordinate(x) + " " + coordinate(y) + "l" + coordinate(-5 * direction) +
                               " -3.5v7z"}});
}

void draw_effect(Markup& out, const Effect& effect, const Column& column, const EffectRow& row, double y) {
  out.open("g", {{"class", "c-" + row.colour}});
  if (effect.on_scale) {
    draw_rule(out, "eb", column.x(effect.low), y, column.x(effect.high), y);
    for (const double tick : effect.ticks)
      draw_rule(out, "eb", column.x(tick), y - tick_reach, column.x(tick), y + tick_reach);
    if (effect.low < column.x.low) draw_arrow(out, column.x(effect.low), y, -1);
    if (effect.high > column.x.high) draw_arrow(out, column.x(effect.high), y, 1);
    draw_circle(out, "d", column.x(effect.value), y, 3.4);
  }
  out.close();
}

void draw_margin(Markup& out, const Effect& effect, const Column& column, double y, double height) {
  if (!effect.on_scale) return;
  const double left = column.x(effect.margin_low);
  draw_rectangle(out, "mg", left, y - height / 2, column.x(effect.margin_high) - left, height);
}

void draw_column(Markup& out, const Effects& figure, const Column& column, const ForestLayout& layout,
                 const Block& block) {
  const double scale = layout.rows.scale;
  const double top = block.top + block.head;
  const double bottom = top + layout.rows.height + 2;
  const double line = line_height * scale;
  const double title = block.top + above_title * scale;
  draw_lines_of_text(out, "mn", column.title_left, title, line, column.title);
  draw_lines_of_text(out, "un", column.title_left, title + line * static_cast<double>(column.title.size()),
                     line, column.unit);
  for (const Tick& tick : column.ticks) {
    const double x = column.x(tick.value);
    draw_rule(out, "g", x, top - 2, x, bottom);
    draw_text(out, "mid", middle_inside(x, tick.label, layout.font, layout.width), bottom + 16 * scale,
              tick.label);
  }
  const auto middle = [&](std::size_t row) {
    return top + layout.rows.places[row].top + row_height * scale / 2;
  };
  for (std::size_t i = 0; i < figure.rows.size(); ++i) {
    if (column.data->effects[i])
      draw_margin(out, *column.data->effects[i], column, middle(i), row_height * scale);
  }
  draw_rule(out, "ax", column.x(0), top - 2, column.x(0), bottom);
  for (std::size_t i = 0; i < figure.rows.size(); ++i) {
    const std::optional<Effect>& effect = column.data->effects[i];
    const double baseline = middle(i) + 4 * scale;
    if (!effect) {
      draw_text(out, "un", column.text_left, baseline, "–");
      continue;
    }
    draw_effect(out, *effect, column, figure.rows[i], middle(i));
    draw_text(out, "pc", column.text_left, baseline, effect->glyph + " " + effect->text);
  }
}

void draw_effects(Markup& out, const Effects& figure, const ForestLayout& layout) {
  if (figure.rows.empty()) return;
  for (const Block& block : layout.blocks) {
    for (std::size_t i = 0; i < figure.rows.size(); ++i)
      draw_labels(out, layout.rows, i, block.top + block.head, forest_baseline * layout.rows.scale);
    for (const Column& column : block.columns) draw_column(out, figure, column, layout, block);
  }
}

}  // namespace

Drawing drawing_of(const Figure&, const Effects& effects, const DrawingStyle& style) {
  const ForestLayout layout = forest_layout(effects, style);
  Drawing drawing{.width = layout.width, .height = layout.height, .wide = true};
  for (const EffectRow& row : effects.rows)
    if (std::ranges::find(drawing.legend, row.label, &LegendEntry::label) == drawing.legend.end())
      drawing.legend.push_back({row.label, "c-" + row.colour});
  for (const EffectColumn& column : effects.columns) drawing.spoken += "; " + column.title;
  drawing.draw = [&effects, layout](Markup& out) { draw_effects(out, effects, layout); };
  return drawing;
}

}  // namespace trainyard::reports
