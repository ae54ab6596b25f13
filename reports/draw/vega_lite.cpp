#include "reports/draw/vega_lite.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "reports/draw/assets.h"
#include "reports/format/number_text.h"

namespace trainyard::reports {

namespace {

using Json = nlohmann::ordered_json;

// A value with six significant digits; null if it is not finite.
Json number(double value) {
  if (!std::isfinite(value)) return nullptr;
  return rounded(value);
}

Json point_row(const Series& series, const Point& point) {
  return {{"series", series.label},   {"x", number(point.x)},       {"mean", number(point.mean)},
          {"low", number(point.low)}, {"high", number(point.high)}, {"n", point.n}};
}

// Colours and dashes as on the page.
Json scales(const std::vector<Series>& all) {
  static const std::vector<Json> dashes{Json::array({5, 3}), Json::array({1.5, 2.5}),
                                        Json::array({7, 2, 1.5, 2}), Json::array({3, 1.5})};
  Json labels = Json::array();
  Json colours = Json::array();
  Json strokes = Json::array();
  for (const Series& series : all) {
    labels.push_back(series.label);
    colours.push_back(light_colour(series.colour));
    strokes.push_back(series.dash == 0 ? Json::array({1, 0})
                                       : dashes[static_cast<std::size_t>(series.dash - 1) % dashes.size()]);
  }
  const Json colour{{"field", "series"},
                    {"type", "nominal"},
                    {"title", nullptr},
                    {"sort", nullptr},
                    {"scale", {{"domain", labels}, {"range", colours}}}};
  const Json dash{{"field", "series"},
                  {"type", "nominal"},
                  {"title", nullptr},
                  {"scale", {{"domain", labels}, {"range", strokes}}}};
  return {{"color", colour}, {"strokeDash", dash}};
}

Json scale_of(bool log, bool zero) {
  if (log) return {{"type", "log"}};  // has no zero
  return {{"type", "linear"}, {"zero", zero}};
}

Json value_axis(const Figure& figure, const char* field, bool log, bool zero) {
  return {{"field", field},
          {"type", "quantitative"},
          {"title", figure.title + (figure.unit.empty() ? "" : ", " + figure.unit)},
          {"scale", scale_of(log, zero)}};
}

// Puts the margin of differences and a line at zero behind the curves. They have their own data: with that of
// the curves they would be drawn once per point.
void add_margin(Json& layers, const Figure& figure, const std::pair<double, double>& limits) {
  const Json data{
      {"values",
       Json::array({{{"low", number(limits.first)}, {"high", number(limits.second)}, {"zero", 0}}})}};
  const Json strip{
      {"data", data},
      {"mark", {{"type", "rect"}, {"opacity", 0.12}, {"color", "#000"}}},
      {"encoding", {{"y", value_axis(figure, "low", false, false)}, {"y2", {{"field", "high"}}}}}};
  const Json zero{{"data", data},
                  {"mark", {{"type", "rule"}}},
                  {"encoding", {{"y", value_axis(figure, "zero", false, false)}}}};
  layers.insert(layers.begin(), zero);
  layers.insert(layers.begin(), strip);
}

void add(Json& specification, const Figure& figure, const Lines& lines) {
  Json values = Json::array();
  for (const Series& series : lines.series) {
    for (const Point& point : series.points) values.push_back(point_row(series, point));
  }
  const Json scale = scales(lines.series);
  const Json x{{"field", "x"},
               {"type", "quantitative"},
               {"title", lines.x.title},
               {"scale", scale_of(lines.x.log, false)}};
  specification["data"] = {{"values", values}};
  Json band{{"mark", {{"type", "area"}, {"opacity", 0.16}, {"clip", true}}},
            {"encoding",
             {{"x", x},
              {"color", scale["color"]},
              {"y", value_axis(figure, "low", lines.y.log, false)},
              {"y2", {{"field", "high"}}}}}};
  // An interval of few seeds may reach below zero, which a logarithmic axis cannot show.
  if (lines.y.log) band["transform"] = Json::array({{{"filter", "datum.low > 0"}}});
  specification["layer"] =
      Json::array({band,
                   {{"mark", {{"type", "line"}, {"point", lines.markers}, {"clip", true}}},
                    {"encoding",
                     {{"x", x},
                      {"color", scale["color"]},
                      {"y", value_axis(figure, "mean", lines.y.log, false)},
                      {"strokeDash", scale["strokeDash"]}}}}});
  if (lines.margin) add_margin(specification["layer"], figure, *lines.margin);
}

// Bars with groups: one facet per group.
std::string group_of(const Bars& bars, std::size_t place) {
  for (const BarGroup& group : bars.groups) {
    if (place < group.bars) return group.name;
    place -= group.bars;
  }
  return "";
}

void add(Json& specification, const Figure& figure, const Bars& bars) {
  Json values = Json::array();
  std::vector<Series> legend;
  for (std::size_t i = 0; i < bars.series.size(); ++i) {
    const Series& series = bars.series[i];
    if (!series.final) continue;
    values.push_back(point_row(series, *series.final));
    if (!bars.groups.empty()) values.back()["group"] = group_of(bars, i);
    if (std::ranges::find(legend, series.key, &Series::key) == legend.end()) legend.push_back(series);
  }
  specification["data"] = {{"values", values}};
  specification["encoding"] = {
      {"x", {{"field", "series"}, {"type", "nominal"}, {"title", nullptr}, {"sort", nullptr}}}};
  specification["layer"] = Json::array(
      {{{"mark", "bar"},
        {"encoding", {{"y", value_axis(figure, "mean", false, true)}, {"color", scales(legend)["color"]}}}},
       {{"mark", {{"type", "rule"}, {"clip", true}}},
        {"encoding", {{"y", value_axis(figure, "low", false, true)}, {"y2", {{"field", "high"}}}}}}});
  if (bars.groups.empty()) return;
  specification["spec"] = {{"encoding", specification["encoding"]}, {"layer", specification["layer"]}};
  specification.erase("encoding");
  specification.erase("layer");
  specification["facet"] = {
      {"column", {{"field", "group"}, {"type", "nominal"}, {"title", nullptr}, {"sort", nullptr}}}};
}

void add(Json& specification, const Figure& figure, const HeatMap& map) {
  Json values = Json::array();
  for (std::size_t i = 0; i < map.cells.size(); ++i) {
    const Point& cell = map.cells[i];
    if (cell.n == 0) continue;
    values.push_back({{"x", map.columns[i % map.columns.size()]},
                      {"y", map.rows[i / map.columns.size()]},
                      {"mean", number(cell.mean)},
                      {"low", number(cell.low)},
                      {"high", number(cell.high)},
                      {"n", cell.n}});
  }
  const auto axis = [](const char* field, const std::string& title, const std::vector<std::string>& order) {
    return Json{{"field", field}, {"type", "ordinal"}, {"title", title}, {"sort", order}};
  };
  const std::vector<std::string> downwards(map.rows.rbegin(), map.rows.rend());
  specification["data"] = {{"values", values}};
  specification["encoding"] = {{"x", axis("x", map.x, map.columns)}, {"y", axis("y", map.y, downwards)}};
  Json colour = value_axis(figure, "mean", map.log, false);
  colour["scale"]["scheme"] = "blues";
  specification["layer"] = Json::array(
      {{{"mark", "rect"}, {"encoding", {{"color", colour}}}},
       {{"mark", "text"},
        {"encoding", {{"text", {{"field", "mean"}, {"type", "quantitative"}, {"format", ".3~g"}}}}}}});
}

void add(Json& specification, const Figure& figure, const Stacks& picture) {
  Json values = Json::array();
  Json names = Json::array();
  Json colours = Json::array();
  for (std::size_t i = 0; i < picture.parts.size(); ++i) {
    names.push_back(picture.parts[i].name);
    colours.push_back(light_colour(picture.parts[i].colour));
    for (const Stack& stack : picture.stacks)
      values.push_back({{"cell", stack.group},
                        {"arm", stack.label},
                        {"part", picture.parts[i].name},
                        {"order", i},
                        {"seconds", number(stack.parts[i])},
                        {"percent", number(100 * stack.parts[i] / stack.reference)}});
  }
  specification["data"] = {{"values", values}};
  specification["mark"] = "bar";
  specification["encoding"] = {
      {"row", {{"field", "cell"}, {"type", "nominal"}, {"title", nullptr}, {"sort", nullptr}}},
      {"y", {{"field", "arm"}, {"type", "nominal"}, {"title", nullptr}, {"sort", nullptr}}},
      {"x", {{"field", "percent"}, {"type", "quantitative"}, {"title", figure.unit}}},
      {"order", {{"field", "order"}}},
      {"color",
       {{"field", "part"},
        {"type", "nominal"},
        {"title", nullptr},
        {"scale", {{"domain", names}, {"range", colours}}}}}};
  specification["resolve"] = {{"scale", {{"y", "independent"}}}};
}

void add(Json& specification, const Figure&, const Effects& picture) {
  Json values = Json::array();
  for (const EffectColumn& column : picture.columns) {
    for (std::size_t i = 0; i < column.effects.size(); ++i) {
      const std::optional<Effect>& effect = column.effects[i];
      if (!effect || !effect->on_scale) continue;
      values.push_back({{"metric", fmt::format("{}, {}", column.title, column.unit)},
                        {"cell", fmt::format("{}, {}", picture.rows[i].group, picture.rows[i].label)},
                        {"effect", number(effect->value)},
                        {"low", number(effect->low)},
                        {"high", number(effect->high)},
                        {"margin_low", number(effect->margin_low)},
                        {"margin_high", number(effect->margin_high)},
                        {"verdict", effect->verdict}});
    }
  }
  const Json row{{"field", "cell"}, {"type", "nominal"}, {"title", nullptr}, {"sort", nullptr}};
  const auto bar = [&](const char* from, const char* to, Json mark) {
    return Json{{"mark", std::move(mark)},
                {"encoding",
                 {{"y", row},
                  {"x", {{"field", from}, {"type", "quantitative"}, {"title", "effect"}}},
                  {"x2", {{"field", to}}}}}};
  };
  specification["data"] = {{"values", values}};
  specification["facet"] = {
      {"column", {{"field", "metric"}, {"type", "nominal"}, {"title", nullptr}, {"sort", nullptr}}}};
  specification["spec"] = {
      {"layer", Json::array({bar("margin_low", "margin_high", {{"type", "bar"}, {"opacity", 0.15}}),
                             bar("low", "high", {{"type", "rule"}}),
                             {{"mark", {{"type", "point"}, {"filled", true}}},
                              {"encoding",
                               {{"y", row},
                                {"x", {{"field", "effect"}, {"type", "quantitative"}}},
                                {"shape", {{"field", "verdict"}, {"type", "nominal"}}}}}}})}};
  specification["resolve"] = {{"scale", {{"x", "independent"}}}};
}

void add_size(Json& specification, const FigureSize& size) {
  const Json fonts{{"labelFontSize", number(size.font)}, {"titleFontSize", number(size.font)}};
  specification["config"] = {
      {"axis", fonts}, {"legend", fonts}, {"header", fonts}, {"title", {{"fontSize", number(size.font)}}}};
  // Vega-Lite fits single plots into a width, but not rows and columns of plots.
  if (specification.contains("facet")) {
    specification["facet"] = {{"row", specification["facet"]["column"]}};
    specification["spec"]["width"] = number(size.width / 2);
    return;
  }
  const bool several = specification.contains("encoding") && specification["encoding"].contains("row");
  specification["width"] = number(several ? size.width / 2 : size.width);
  if (size.height > 0 && !several) specification["height"] = number(size.height);
  if (!several) specification["autosize"] = {{"type", "fit"}, {"contains", "padding"}};
}

}  // namespace

std::string vega_lite(const Figure& figure, const FigureSize& size) {
  if (!figure.missing.empty()) throw InternalError("figure " + figure.slug + " has nothing to draw");
  Json specification{{"$schema", "https://vega.github.io/schema/vega-lite/v5.json"}};
  if (size.title) specification["title"] = whole_title(figure, " · ");
  specification["description"] = figure.caption;
  std::visit([&](const auto& picture) { add(specification, figure, picture); }, figure.picture);
  if (size.sized()) add_size(specification, size);
  return specification.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace trainyard::reports
