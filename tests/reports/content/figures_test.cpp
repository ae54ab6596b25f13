// Content of the figures: scaling, effects, lost time, and positions of guides.
#include <algorithm>
#include <cmath>
#include <regex>
#include <set>

#include <doctest/doctest.h>

#include "reports/content/content.h"
#include "reports/content/scaling.h"
#include "reports/draw/line_drawing.h"
#include "reports/draw/svg.h"
#include "reports/report/page.h"
#include "tests/reports/support/made_results.h"
#include "tests/support/contains.h"

namespace trainyard::reports {
namespace {

const Figure& figure_named(const Content& content, const std::string& slug) {
  const std::vector<const Figure*> figures = all_figures(content);
  return **std::ranges::find(figures, slug, &Figure::slug);
}

const Lines& lines_of(const Figure& figure) {
  return std::get<Lines>(figure.picture);
}

// Sets the times of reference case R3 of docs/verdicts-and-statistics.md.
void set_reference_times(ReportData& data) {
  const std::vector<double> single{100, 102, 98, 101, 99};
  const std::vector<double> ddp{55, 56.5, 54, 55.5, 54.5};
  set_final(data, "mlp", "single", "epoch_train_seconds",
            [&](int seed) { return single[static_cast<std::size_t>(seed)]; });
  set_final(data, "mlp", "ddp", "epoch_train_seconds",
            [&](int seed) { return ddp[static_cast<std::size_t>(seed)]; });
}

TEST_CASE("speed-up and efficiency are the geometric mean over pairs, with an interval") {
  ReportData data = invented({.models = {"mlp"}});
  set_reference_times(data);
  const Content content = compose(data);
  const Point speed_up = *series_of(figure_named(content, "speed-up")).front().final;
  CHECK(speed_up.x == 2);
  CHECK(speed_up.mean == doctest::Approx(1.8149208364954).epsilon(1e-9));
  CHECK(speed_up.low == doctest::Approx(1.8078570899288).epsilon(1e-9));
  CHECK(speed_up.high == doctest::Approx(1.8220121828739).epsilon(1e-9));
  const Point efficiency = *series_of(figure_named(content, "efficiency")).front().final;
  CHECK(efficiency.mean == doctest::Approx(50 * 1.8149208364954).epsilon(1e-9));
}

TEST_CASE(
    "speed-ups, time parts and times of epochs are drawn only from times that count, and the rest is "
    "counted") {
  ReportData data = invented({.models = {"mlp"}, .strategies = {"single", "ddp", "mp-ddp"}});
  for (int seed = 0; seed < 5; ++seed) final_of(data, "mlp", "mp-ddp", seed).times_count = false;
  final_of(data, "mlp", "ddp", 0).times_count = false;
  Content content = compose(data);
  for (const char* name : {"speed-up", "mlp-train-seconds", "mlp-validation-loss-over-time"})
    CHECK(contains(figure_named(content, name).caption, "Left out: 6 runs whose times do not count."));
  CHECK(contains(content.breakdown.caption, "Left out: 6 runs whose times do not count."));
  bool of_effects = false;
  for (const Figure& figure : content.effects.front())
    of_effects =
        of_effects || contains(figure.caption, "slowest rank. Left out: 6 runs whose times do not count.");
  CHECK(of_effects);
  REQUIRE(content.breakdown.remarks.size() == 1);
  CHECK(contains(content.breakdown.remarks.front(), "MLP, ddp: "));
  const std::vector<Series> speed_ups = series_of(figure_named(content, "speed-up"));
  REQUIRE(speed_ups.size() == 1);
  CHECK(speed_ups.front().final->n == 4);
  for (const Series& one : series_of(figure_named(content, "mlp-train-seconds")))
    CHECK_FALSE(contains(one.label, "mp-ddp"));

  for (db::FinalMetrics& final : data.finals) final.times_count = false;
  content = compose(data);
  CHECK(content.scaling.empty());
  CHECK(content.breakdown.remarks.empty());
  CHECK(
      contains(content.figures.front().lacking,
               "Not drawn: training time per epoch, total validation time. Left out: 15 runs whose times do "
               "not count."));
}

TEST_CASE("the machine's limit is the speed of independent runs, and it is not measured without them") {
  ReportData data = invented({.models = {"mlp"}});
  set_reference_times(data);
  {
    const Content content = compose(data);
    CHECK(contains(figure_named(content, "speed-up").caption, "was not measured"));
  }
  db::RunSummary like = run_of(data, "mlp", "single", 0);
  like.axes["seed"] = std::int64_t{77};
  data.packed.push_back({"packed", like.circumstances_hash, like.axes, 125, 2});
  like.axes["batch"] = std::int64_t{999};  // other work
  data.packed.push_back({"other", like.circumstances_hash, like.axes, 500, 2});
  const Content content = compose(data);
  const std::vector<MachineLimit> limits = content.figures.front().cell->machine_limits;
  REQUIRE(limits.size() == 1);
  CHECK(limits.front().speed_up == doctest::Approx(2 * 100.0 / 125).epsilon(1e-3));
  const Figure& figure = figure_named(content, "speed-up");
  CHECK(contains(figure.caption, "Grey: independent runs at once, the limit of the machine."));
  const Series& limit = series_of(figure).back();
  CHECK(limit.label == "independent runs at once");
  CHECK(limit.final->mean == doctest::Approx(1.6).epsilon(1e-3));
}

TEST_CASE("speed-up and efficiency of all models are in one figure each, with one bar per model and arm") {
  const ReportData data = invented({.models = {"mlp", "cnn"}, .strategies = {"single", "ddp", "pipeline"}});
  const Content content = compose(data);
  const Figure& figure = figure_named(content, "speed-up");
  const auto& bars = std::get<Bars>(figure.picture);
  REQUIRE(bars.groups.size() == 2);
  CHECK(bars.groups.front().name == "MLP");
  CHECK(bars.groups.back().name == "CNN");
  CHECK(bars.groups.back().bars == 2);
  REQUIRE(bars.series.size() == 4);
  CHECK(bars.series[0].colour == bars.series[2].colour);  // the same arm
  CHECK(bars.guides.front().points.front().second == 2);  // ideal
  CHECK(figure.data.rows.size() == 4);
  const std::string svg = svg_document(figure);
  for (const char* text : {">MLP</text>", ">CNN</text>", "ideal on 2"}) CHECK(contains(svg, text));
  // Two numbers of devices make no curve.
  for (const CellFigures& cell : content.figures)
    for (const Figure& panel : cell.panels) CHECK_FALSE(contains(panel.slug, "speed-up"));
}

TEST_CASE("a model has curves over devices from three numbers of devices on") {
  ReportData data = invented({.models = {"mlp"}, .strategies = {"single", "ddp", "mp-ddp"}});
  for (auto& [key, launched] : data.launched) launched.devices = launched.cores.size();  // 1, 2 and 4
  const Content content = compose(data);
  const Figure& figure = figure_named(content, "mlp-speed-up");
  CHECK(lines_of(figure).series.front().points.back().x == 2);
  CHECK(lines_of(figure).series.back().points.back().x == 4);
  figure_named(content, "mlp-efficiency");
}

TEST_CASE("without an arm on more devices there is no speed-up") {
  const ReportData data = invented({.models = {"mlp"}, .strategies = {"single"}});
  CHECK(compose(data).scaling.empty());
}

TEST_CASE("independent runs at once are the machine's limit, not an arm") {
  ReportData data = invented({.models = {"mlp"}, .strategies = {"single", "ddp", "independent"}});
  for (db::RunSummary& run : data.runs)
    if (run.strategy == "independent") {
      run.kind = run.strategy;
      run.replicas = 2;
    }
  const std::vector<double> alone{100, 102, 98, 101, 99};
  const auto set = [&](const char* strategy, double factor) {
    set_final(data, "mlp", strategy, "epoch_train_seconds",
              [&](int seed) { return factor * alone.at(static_cast<std::size_t>(seed)); });
  };
  set("single", 1);
  set("independent", 1.25);  // two at once take 1.25 times as long
  Content content = compose(data);
  const Cell& cell = *content.figures.front().cell;
  REQUIRE(cell.arms.size() == 1);
  CHECK(cell.arms.front().value == "ddp");
  const std::vector<MachineLimit> limits = cell.machine_limits;
  REQUIRE(limits.size() == 1);
  CHECK(limits.front().runs == 2);
  CHECK(limits.front().speed_up == doctest::Approx(2 / 1.25));
  CHECK(limits.front().pairs == 5);
  const Figure& figure = figure_named(content, "speed-up");
  CHECK(std::ranges::find(series_of(figure), "independent runs at once", &Series::label) !=
        series_of(figure).end());
  CHECK(contains(content.breakdown.remarks.front(),
                 "(ideal: 2.00; 2 independent runs at once: speed-up 1.60, 95 % interval 1.60 to 1.60)."));
  for (const Verdict& verdict : content.report->comparisons.front().cells.front().verdicts)
    CHECK(verdict.arm == "ddp");

  // A run of other work or circumstances than its partner, or whose times do not count, has no part in it.
  run_of(data, "mlp", "independent", 3).axes["batch"] = std::int64_t{999};
  run_of(data, "mlp", "independent", 2).circumstances_hash = "another program";
  final_of(data, "mlp", "independent", 1).times_count = false;
  content = compose(data);
  CHECK(content.figures.front().cell->machine_limits.front().pairs == 2);
}

TEST_CASE("a limit of the machine above its number of devices is not drawn, and its runs are named") {
  ReportData data = invented({.models = {"mlp"}, .strategies = {"single", "ddp", "independent"}, .seeds = 1});
  db::RunSummary& run = run_of(data, "mlp", "independent", 0);
  run.kind = run.strategy;
  run.replicas = 2;
  set_final(data, "mlp", "single", "epoch_train_seconds", [](int) { return 3.02; });
  set_final(data, "mlp", "independent", "epoch_train_seconds", [](int) { return 2.0; });
  const Content content = compose(data);
  CHECK(content.figures.front().cell->machine_limits.empty());
  const auto& list = content.report->fairness;
  const auto found = std::ranges::find_if(list, [](const Statement& one) {
    return contains(one.text, "2 independent runs at once were 3.02 times as fast as one");
  });
  REQUIRE(found != list.end());
  CHECK(found->severity == Severity::unfair);
  for (const char* strategy : {"single", "independent"})
    CHECK(contains(found->text, run_of(data, "mlp", strategy, 0).run_key));
}

TEST_CASE("a sentence explains what an arm loses compared with its share of the baseline's time") {
  // Single takes 2 s per epoch. Two devices take 1.195 s, and 1 s is ideal. 0.195 s are lost: 0.12 s waiting
  // for gradients and 0.05 s for the full optimizer step on each replica.
  const ReportData data = invented({.models = {"mlp"}});
  const Content content = compose(data);
  REQUIRE(content.breakdown.remarks.size() == 1);
  CHECK(content.breakdown.remarks.front() ==
        "MLP, ddp: 1.20 s per epoch on 2 devices, speed-up 1.67 (ideal: 2.00). Lost time: "
        "62 % waiting for other ranks' gradients, 26 % the optimizer.");
}

TEST_CASE("the forest plot has each effect of the verdicts with its margin") {
  ReportData data = invented({.models = {"mlp"}});
  set_reference_times(data);
  const Content content = compose(data);
  const auto& figure = std::get<Effects>(figure_named(content, "effects-strategy").picture);
  REQUIRE(figure.rows.size() == 1);
  const auto column = std::ranges::find(figure.columns, "Training time per epoch", &EffectColumn::title);
  REQUIRE(column != figure.columns.end());
  const Effect& effect = *column->effects.front();
  CHECK(effect.value == doctest::Approx(100 * (1 / 1.8149208364954 - 1)));
  CHECK(effect.low == doctest::Approx(100 * (1 / 1.8220121828739 - 1)));
  CHECK(effect.margin_high == doctest::Approx(5));
  CHECK(effect.verdict == "IMPROVES");
}

TEST_CASE("loss over wall-clock time adds up training and validation") {
  ReportData data = invented({.models = {"mlp"}, .seeds = 2, .epochs = 3});
  for (db::EpochRow& row : data.averages) {
    row["train_seconds"] = row.strategy == "single" ? 4 : 2;
    row["validation_seconds"] = 1;
  }
  const Content content = compose(data);
  const auto& figure = lines_of(figure_named(content, "mlp-validation-loss-over-time"));
  REQUIRE(figure.series.size() == 2);
  const auto& points = figure.series.front().points;
  REQUIRE(points.size() == 3);
  CHECK(points[0].x == 5);
  CHECK(points[2].x == 15);
  CHECK(figure.series.back().points[2].x == 9);
}

TEST_CASE("classes of the user's own data have the names of their folders") {
  ReportData data = invented({.models = {"mlp"}});
  experiments::ProfiledData profiled{"text-folder", "text-folder", "abc", {}};
  for (std::vector<std::int64_t>& part : profiled.profile.classes) part.assign(2, 5);
  profiled.profile.class_names = {"music", "<own>"};
  data.plan.data_profiles.push_back(experiments::profiled_data_from_json(experiments::to_json(profiled)));
  const Content content = compose(data);
  REQUIRE(content.data_figures.size() == 1);
  CHECK(contains(svg_document(content.data_figures[0]), ">music</text>"));
  CHECK(contains(page_html(content), "&lt;own&gt;"));
  CHECK_FALSE(contains(page_html(content), "<own>"));
}

TEST_CASE("a figure of very many classes has the largest ones, and its data has all") {
  ReportData data = invented({.models = {"mlp"}});
  experiments::ProfiledData profiled{"folder", "folder", "abc", {}};
  for (std::vector<std::int64_t>& part : profiled.profile.classes) part.assign(700, 5);
  profiled.profile.classes[0][699] = 6;
  data.plan.data_profiles.push_back(profiled);
  const Figure figure = compose(data).data_figures.front();
  CHECK(series_of(figure).size() == 40);
  CHECK(series_of(figure).front().label == "class 699");
  CHECK(series_of(figure)[1].label == "class 0");
  CHECK(figure.data.rows.size() == 700);
  CHECK(contains(figure.caption, "The figure has the 40 largest of 700 classes"));
}

TEST_CASE("the densities of all channels are in one panel with a legend, and classes have their names") {
  ReportData data = invented({.models = {"mlp"}});
  experiments::ProfiledData profiled{"cifar10", "cifar10", "abc", {}};
  for (std::vector<std::int64_t>& part : profiled.profile.classes) part.assign(10, 5);
  for (const char* channel : {"red", "green", "blue"})
    profiled.profile.channels.push_back({channel, std::vector<std::int64_t>(models::brightness_bins, 2)});
  data.plan.data_profiles.push_back(profiled);
  const Content content = compose(data);
  REQUIRE(content.data_figures.size() == 2);
  const Figure& classes = content.data_figures.front();
  CHECK(series_of(classes)[3].label == "class cat");
  CHECK(contains(svg_document(classes), ">airplane</text>"));
  const Figure& density = content.data_figures.back();
  CHECK(series_of(density).size() == 3);
  const std::string page = page_html(content);
  for (const char* channel : {"red", "green", "blue"}) {
    CHECK(contains(page, std::string("</svg>") + channel + "</li>"));
    CHECK(contains(svg_document(density), std::string(">") + channel + "</text>"));
  }
}

Figure sloping(std::vector<Guide> guides) {
  Lines lines;
  lines.x.title = "epoch";
  lines.x.integers = true;
  Series series{"a", "a", "a", "single", 0, {}, std::nullopt};
  for (int epoch = 1; epoch <= 10; ++epoch)
    series.points.push_back({double(epoch), 40 + 5.0 * epoch, NAN, NAN, 1});
  lines.series.push_back(series);
  lines.guides = std::move(guides);
  Figure figure;
  figure.title = "Training accuracy";
  figure.unit = "%";
  figure.picture = std::move(lines);
  return figure;
}

LineLayout layout_of(const Figure& figure) {
  return line_layout(lines_of(figure), figure.unit);
}

using Rows = std::vector<std::string>;

TEST_CASE("guides are named in rows above the curves, with their values if two guides look the same") {
  const std::string name = "the machine's limit, " + std::string(90, 'w');
  const Figure figure = sloping({{"published single", "published", {{1, 70}, {10, 70}}},
                                 {"published ddp", "published", {{1, 61}, {20, 80}}},
                                 {"ideal", "ideal", {{1, 50}, {10, 90}}},
                                 {name, "limit", {{1, 55}, {10, 85}}}});
  const LineLayout layout = layout_of(figure);
  REQUIRE(layout.guides.size() == 4);
  for (const GuideLayout& guide : layout.guides) CHECK(guide.line.size() == 2);
  CHECK(layout.guides[0].rows == Rows{"published single: 70.0 %"});
  CHECK(layout.guides[1].rows == Rows{"published ddp: 80.0 % at epoch 20"});
  CHECK(layout.guides[2].rows == Rows{"ideal"});
  CHECK(layout.guides[3].rows.size() > 1);
  const std::string svg = page_svg(figure).str();
  const std::regex label(R"re(class="gt" x="[0-9.]+" y="([0-9.]+)")re");
  std::set<double> baselines;
  for (auto at = std::sregex_iterator(svg.begin(), svg.end(), label); at != std::sregex_iterator(); ++at)
    baselines.insert(std::stod((*at)[1]));
  CHECK(baselines.size() == 3 + layout.guides[3].rows.size());
  CHECK(*baselines.rbegin() < layout.top);
  CHECK(layout.y.pixel_high == layout.top);  // the curves begin there
}

TEST_CASE("a guide far outside the range does not squeeze the curves, and its value is printed") {
  const Figure figure = sloping({{"published, single", "published", {{1, 9000}, {10, 9000}}}});
  const LineLayout layout = layout_of(figure);
  CHECK(layout.y.high < 100);
  CHECK(layout.guides.front().line.empty());
  CHECK(layout.guides.front().rows == Rows{"published, single: 9000 %, off the scale"});
  CHECK(contains(svg_document(figure), "off the scale"));
}

TEST_CASE("a guide for an epoch outside the plot names its epoch") {
  const Figure figure = sloping({{"published ddp", "published", {{20, 80}}}});
  const LineLayout layout = layout_of(figure);
  CHECK(layout.guides.front().line.empty());
  CHECK(layout.guides.front().rows == Rows{"published ddp: 80.0 % at epoch 20"});
}

TEST_CASE("a guide ends with the last epoch") {
  const Figure figure = sloping({{"published", "published", {{1, 50}, {19, 68}}}});
  const LineLayout layout = layout_of(figure);
  const Polyline& line = layout.guides.front().line;
  REQUIRE(line.size() == 2);
  CHECK(line.back().first == doctest::Approx(layout.x.pixel_high));
  CHECK(line.back().second == doctest::Approx(layout.y(59)));  // halfway
}

TEST_CASE("the margin of differences is drawn once, not once per point") {
  const ReportData data = invented({.models = {"mlp"}});
  const Content content = compose(data);
  const Figure& figure = figure_named(content, "mlp-validation-accuracy-difference");
  const std::string svg = svg_document(figure);
  const std::string strip = "class=\"mg\"";
  REQUIRE(contains(svg, strip));
  CHECK(svg.find(strip) == svg.rfind(strip));
}

TEST_CASE("the timeline of a step has a row per stage, and says which share of it each stage waited") {
  ReportData data = invented({.models = {"mlp"}, .strategies = {"single", "ddp", "pipeline"}});
  CHECK(compose(data).timelines.empty());
  const db::RunSummary& first = run_of(data, "mlp", "pipeline", 0);
  const db::RunSummary& second = run_of(data, "mlp", "pipeline", 1);
  for (const db::RunSummary* run : {&first, &second}) add_step(data, *run);
  final_of(data, "mlp", "pipeline", 0).times_count = false;
  const Content content = compose(data);
  REQUIRE(content.timelines.size() == 1);
  const Figure& figure = figure_named(content, "mlp-timeline");
  CHECK(figure.unit == "ms");
  const auto& picture = std::get<Spans>(figure.picture);
  REQUIRE(picture.rows.size() == 2);
  CHECK(picture.rows[0].group == "pipeline");
  CHECK(picture.rows[0].label == "stage 0");
  CHECK(picture.rows[1].label == "stage 1");
  const auto name = [&](const Span& span) { return picture.parts.at(span.part).name; };
  const Span& waits = picture.rows[0].spans.at(2);
  CHECK(name(waits) == "Pipeline bubble");
  CHECK(waits.waits);
  const Span& backward = picture.rows[0].spans.at(3);
  CHECK(name(backward) == "Backward");
  CHECK_FALSE(backward.waits);
  CHECK(backward.label == "0");
  CHECK(backward.begin == doctest::Approx(1.5));
  CHECK(name(picture.rows[1].spans.at(1)) == "Exposed communication");
  CHECK(picture.rows[1].spans.back().label.empty());
  CHECK(contains(figure.caption,
                 "pipeline: step 30 of epoch 2 of run " + second.run_key +
                     ", 2.00 ms. Idle, waiting for a neighbouring stage: stage 0 25 %, stage 1 50 %."));
  CHECK_FALSE(contains(figure.caption, "do not count"));
  CHECK(figure.data.rows.size() == 9);
  const std::string page = page_html(content);
  CHECK(contains(page, "id=\"figure-mlp-timeline\""));
  CHECK(contains(page, "pipeline, stage 0: Backward of micro-batch 0, 1.500 to 2.000 ms"));

  data.step_events.resize(9);  // of the first run
  CHECK(contains(compose(data).timelines.at(0).caption, "The times of this run do not count."));
  data.step_events[0].host = "another";  // whose clock differs
  CHECK(compose(data).timelines.empty());
  data.step_events.resize(4);  // stage 1 has recorded nothing
  CHECK(compose(data).timelines.empty());
}

}  // namespace
}  // namespace trainyard::reports
