// Panels of a cell: differences of curves that lie on each other, labels, captions, and series of ranks.
#include "reports/content/panels.h"

#include <algorithm>
#include <cmath>

#include <doctest/doctest.h>

#include "reports/content/content.h"
#include "reports/draw/svg.h"
#include "reports/report/page.h"
#include "tests/reports/support/made_results.h"
#include "tests/support/contains.h"

namespace trainyard::reports {
namespace {

const Figure* find_panel(const Content& content, const std::string& slug) {
  const std::vector<const Figure*> figures = all_figures(content);
  const auto found = std::ranges::find(figures, slug, &Figure::slug);
  return found == figures.end() ? nullptr : *found;
}

const Figure& panel_named(const Content& content, const std::string& slug) {
  const Figure* figure = find_panel(content, slug);
  REQUIRE_MESSAGE(figure != nullptr, slug);
  return *figure;
}

Lines lines_with(const std::vector<double>& one, const std::vector<double>& other) {
  Lines lines;
  for (const std::vector<double>& values : {one, other}) {
    Series series{"a", "a", "a", "single", 0, {}, std::nullopt};
    for (std::size_t i = 0; i < values.size(); ++i)
      series.points.push_back({static_cast<double>(i + 1), values[i], NAN, NAN, 1});
    lines.series.push_back(series);
  }
  return lines;
}

TEST_CASE("curves lie on each other if their mean distance is at most 3 % of their extent") {
  CHECK(lie_on_each_other(lines_with({0, 50, 100}, {0, 50, 100})));
  CHECK(lie_on_each_other(lines_with({0, 50, 100}, {3, 53, 97})));
  CHECK_FALSE(lie_on_each_other(lines_with({0, 50, 100}, {3.5, 53.5, 96.5})));
  CHECK_FALSE(lie_on_each_other(lines_with({0, 50, 100}, {})));
  // On a logarithmic axis small values have room too.
  Lines lines = lines_with({1, 0.1, 0.01}, {1, 0.1, 0.02});
  CHECK(lie_on_each_other(lines));
  lines.y.log = true;
  CHECK_FALSE(lie_on_each_other(lines));
}

TEST_CASE("the difference has the mean over pairs at each epoch, with interval and margin") {
  ReportData data = invented({.models = {"mlp"}, .seeds = 3, .epochs = 4});
  // ddp is better by 0.1, 0.2 and 0.3 points for the seeds 0, 1 and 2, at each epoch.
  for (db::EpochRow& row : data.averages) {
    row["validation_accuracy"] = 0.2 * static_cast<double>(row.epoch) + 0.01 * static_cast<double>(row.seed);
    if (row.strategy == "ddp") row["validation_accuracy"] += 0.001 * static_cast<double>(row.seed + 1);
  }
  const Content content = compose(data);
  const Figure& figure = panel_named(content, "mlp-validation-accuracy-difference");
  CHECK(figure.title == "Validation accuracy, difference from single");
  CHECK(figure.unit == "points");
  const auto& lines = std::get<Lines>(figure.picture);
  REQUIRE(lines.series.size() == 1);
  REQUIRE(lines.series.front().points.size() == 4);
  // The mean is 0.2 and s = 0.1. With two degrees of freedom t = 0.95·√(2/(1 − 0.95²)).
  const double half = 0.1 * 0.95 * std::sqrt(2 / (1 - 0.95 * 0.95)) / std::sqrt(3.0);
  for (const Point& point : lines.series.front().points) {
    CHECK(point.mean == doctest::Approx(0.2).epsilon(1e-9));
    CHECK(point.low == doctest::Approx(0.2 - half).epsilon(1e-9));
    CHECK(point.high == doctest::Approx(0.2 + half).epsilon(1e-9));
  }
  REQUIRE(lines.margin);
  CHECK(lines.margin->first == doctest::Approx(-0.5));
  CHECK(lines.margin->second == doctest::Approx(0.5));
  CHECK(contains(svg_document(figure), "class=\"mg\""));
  // It is beside its curve, which stays.
  const std::vector<Figure>& panels = content.figures.front().panels;
  const auto place = std::ranges::find(panels, figure.slug, &Figure::slug);
  CHECK(std::prev(place)->slug == "mlp-validation-accuracy");
}

TEST_CASE("a ratio is a difference in percent") {
  ReportData data = invented({.models = {"mlp"}, .seeds = 3, .epochs = 4});
  for (db::EpochRow& row : data.averages)
    row["validation_loss"] = std::pow(2.0, -row.epoch) * 10 * (row.strategy == "ddp" ? 1.01 : 1);
  for (db::FinalMetrics& final : data.finals)
    final["validation_loss"] = 10.0 / 16 * (final.strategy == "ddp" ? 1.01 : 1);
  const Content content = compose(data);
  const Figure& figure = panel_named(content, "mlp-validation-loss-difference");
  CHECK(figure.unit == "%");
  const auto& lines = std::get<Lines>(figure.picture);
  for (const Point& point : lines.series.front().points)
    CHECK(point.mean == doctest::Approx(1).epsilon(1e-9));
  CHECK(lines.margin->second == doctest::Approx(2));
}

TEST_CASE("curves that do not lie on each other have no difference") {
  ReportData data = invented({.models = {"mlp"}});
  for (db::EpochRow& row : data.averages)
    if (row.strategy == "ddp") row["validation_accuracy"] -= 0.2;
  const Content content = compose(data);
  CHECK(find_panel(content, "mlp-validation-accuracy-difference") == nullptr);
  CHECK(find_panel(content, "mlp-train-seconds-difference") == nullptr);
}

TEST_CASE("a time is that of the slowest rank, and no label calls it an average") {
  const ReportData data = invented({.models = {"mlp"}, .energy = true});
  const Content content = compose(data);
  for (const char* slug : {"mlp-train-seconds", "mlp-validation-seconds"}) {
    const Figure& figure = panel_named(content, slug);
    CHECK(series_of(figure)[1].label == "ddp slowest rank");
    CHECK(contains(figure.caption, "slowest rank"));
    CHECK_FALSE(contains(svg_document(figure), "average"));
  }
  CHECK(contains(panel_named(content, "speed-up").caption, "of the slowest rank"));
  CHECK(contains(content.effects.front().front().caption, "Times are those of the slowest rank."));
  CHECK(series_of(panel_named(content, "mlp-train-energy"))[1].label == "ddp all devices");
  CHECK(series_of(panel_named(content, "mlp-train-loss"))[1].label == "ddp average");
}

TEST_CASE("the legend of the page has the arms first, and one button for the ranks") {
  const ReportData data = invented({.models = {"mlp"}, .strategies = {"single", "ddp", "mp-ddp"}});
  const Content content = compose(data);
  std::vector<std::string> labels;
  for (const Series& series : legend(content.figures.front().panels)) labels.push_back(series.label);
  CHECK(labels == std::vector<std::string>{"single", "ddp", "mp-ddp", "ddp rank 0", "ddp rank 1",
                                           "mp-ddp replica 0", "mp-ddp replica 1"});
  const std::string page = page_html(content);
  CHECK(contains(page, "<button type=\"button\" id=\"ranks\" aria-pressed=\"false\">Ranks</button>"));
  const ReportData alone = invented({.models = {"mlp"}, .strategies = {"single", "pipeline"}});
  CHECK_FALSE(contains(page_html(compose(alone)), "id=\"ranks\""));
}

TEST_CASE("a file has the arms only, and with the option also the ranks") {
  const ReportData data = invented({.models = {"mlp"}});
  const Content content = compose(data);
  const Figure& figure = panel_named(content, "mlp-train-loss");
  CHECK(contains(svg_document(figure), "ddp rank 1"));
  CHECK_FALSE(contains(svg_document(without_ranks(figure)), "ddp rank"));
  CHECK(without_ranks(figure).data.columns.size() == figure.data.columns.size());
}

TEST_CASE("a section explains the intervals once, in plain words, and each file explains its own") {
  const ReportData data = invented({.models = {"mlp"}});
  const Content content = compose(data);
  const std::string words =
      "Each value is the mean over 5 seeds. A band or a vertical bar is the 95 % t interval of this mean: if "
      "the "
      "experiment were repeated many times, 95 % of such intervals would contain the true mean.";
  for (const Figure& figure : content.figures.front().panels) CHECK(figure.caption.starts_with(words));
  const Markup section = page_panels(content.figures.front(), {});
  const std::string text = section.str();
  const std::size_t first = text.find(words);
  REQUIRE(first != std::string::npos);
  CHECK(text.find(words, first + 1) == std::string::npos);
}

}  // namespace
}  // namespace trainyard::reports
