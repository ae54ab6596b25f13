// Studies of numeric axes: points, axes, titles and data.
#include <algorithm>
#include <cmath>

#include <doctest/doctest.h>

#include "reports/content/content.h"
#include "reports/content/figures_of_all_models.h"
#include "reports/draw/line_drawing.h"
#include "reports/draw/svg.h"
#include "reports/report/page.h"
#include "tests/reports/support/made_results.h"
#include "tests/support/contains.h"

namespace trainyard::reports {
namespace {

ReportData study_of_batches(const std::vector<std::int64_t>& batches) {
  ReportData data = study_of({"batch"}, std::to_string(batches.front()));
  double mean = 0.8;
  for (const std::int64_t batch : batches) add_variant(data, {{"batch", batch}}, mean += 0.02);
  return data;
}

const Figure& study_figure(const std::vector<Study>& studies, const std::string& slug) {
  for (const Study& study : studies)
    for (const Figure& figure : study.figures)
      if (figure.slug == slug) return figure;
  FAIL("no figure " << slug);
  throw std::out_of_range(slug);
}

TEST_CASE("a study has the mean over seeds with its t interval for each value of a numeric axis") {
  const ReportData data = study_of_batches({32, 128, 512});
  const Content content = compose(data);
  REQUIRE(content.studies.size() == 1);
  const Figure& figure = study_figure(content.studies, "study-mlp-validation-accuracy-batch");
  const auto& lines = std::get<Lines>(figure.picture);
  REQUIRE(lines.series.size() == 1);
  REQUIRE(lines.series.front().points.size() == 3);
  // s = 1 point; with two degrees of freedom t = 0.95·√(2/(1 − 0.95²)) in closed form.
  const double half = 0.95 * std::sqrt(2 / (1 - 0.95 * 0.95)) / std::sqrt(3.0);
  for (std::size_t i = 0; i < 3; ++i) {
    const Point& point = lines.series.front().points[i];
    CHECK(point.x == std::vector<double>{32, 128, 512}[i]);
    CHECK(point.mean == doctest::Approx(82 + 2.0 * static_cast<double>(i)).epsilon(1e-12));
    CHECK(point.low == doctest::Approx(point.mean - half).epsilon(1e-12));
    CHECK(point.high == doctest::Approx(point.mean + half).epsilon(1e-12));
    CHECK(std::get<double>(figure.data.rows[i][2]) == point.mean);
  }
  CHECK(figure.title == "Validation accuracy by batch");
  CHECK(contains(figure.caption, "95 % t interval"));
  CHECK(contains(figure.caption, "Effect of batch (32, 128 and 512) on MLP."));
  study_figure(content.studies, "study-mlp-train-seconds-batch");
}

TEST_CASE("the axis of a study is logarithmic if its values span more than a factor of ten") {
  const std::vector<std::pair<std::vector<std::int64_t>, bool>> cases{
      {{32, 128, 512}, true}, {{1, 2, 4}, false}, {{1, 10}, false}};
  for (const auto& [values, log] : cases) {
    const ReportData data = study_of_batches(values);
    const Content content = compose(data);
    const Figure& figure = study_figure(content.studies, "study-mlp-validation-accuracy-batch");
    const auto& lines = std::get<Lines>(figure.picture);
    CHECK(lines.x.log == log);
    const LineLayout layout = line_layout(lines, figure.unit);
    REQUIRE(layout.x_ticks.size() == values.size());  // a tick per value
    CHECK(layout.x_ticks.back().label == std::to_string(values.back()));
    // On a logarithmic axis, equal factors have equal distances.
    if (log) CHECK(layout.x(128) - layout.x(32) == doctest::Approx(layout.x(512) - layout.x(128)));
  }
}

TEST_CASE("the title of a study names the values, the baseline and the models") {
  CHECK(study_title("threads", {"2", "4"}, "1", {"MLP"}) == "Effect of threads (2 and 4 against 1) on MLP");
  CHECK(study_title("learning_rate", {"0.1", "0.01"}, "0.01", {"MLP", "CNN"}) ==
        "Effect of learning rate (0.1 against 0.01) on MLP and CNN");
  CHECK(study_title("batch", {"1", "2"}, "", {"a", "b", "c", "d", "e"}) ==
        "Effect of batch (1 and 2) on 5 models");
  const ReportData data = study_of_batches({32, 128, 512});
  const Content content = compose(data);
  CHECK(content.studies.front().title == "Effect of batch (128 and 512 against 32) on MLP");
  CHECK(contains(page_html(content), "<h2>Effect of batch (128 and 512 against 32) on MLP</h2>"));
}

TEST_CASE("without a numeric axis there is no study") {
  const ReportData data = invented();
  CHECK(compose(data).studies.empty());
}

TEST_CASE("times of runs whose times do not count are not in a study") {
  ReportData data = study_of_batches({32, 128});
  for (db::FinalMetrics& final : data.finals) final["epoch_train_seconds"] = 2;
  data.finals.front()["epoch_train_seconds"] = 100;
  data.finals.front().times_count = false;
  const Content content = compose(data);
  const Figure& figure = study_figure(content.studies, "study-mlp-train-seconds-batch");
  const Point& point = series_of(figure).front().points.front();
  CHECK(point.mean == 2);
  CHECK(point.n == 2);
  CHECK(contains(figure.caption, "Runs left out because their times do not count: 1."));
}

TEST_CASE("axes that change together are one study") {
  ReportData data = study_of({"batch", "learning_rate"}, "32");
  add_variant(data, {{"batch", std::int64_t{32}}, {"learning_rate", 0.1}}, 0.8);
  add_variant(data, {{"batch", std::int64_t{64}}, {"learning_rate", 0.2}}, 0.9);
  const Content content = compose(data);
  REQUIRE(content.studies.size() == 1);
  CHECK(contains(content.studies.front().figures.front().caption, "learning rate changes with batch."));
}

// A grid of batch and learning rate without its last cell.
ReportData grid() {
  ReportData data = study_of({"batch", "learning_rate"}, "32");
  double mean = 0.5;
  for (const std::int64_t batch : {32, 64})
    for (const double rate : {0.01, 0.1, 1.0})
      if (batch == 32 || rate < 1)
        add_variant(data, {{"batch", batch}, {"learning_rate", rate}}, mean += 0.05);
  return data;
}

TEST_CASE("with two numeric axes, each line of a study is one value of the other axis") {
  const ReportData data = grid();
  const Content content = compose(data);
  const Figure& figure = study_figure(content.studies, "study-mlp-validation-accuracy-learning-rate");
  std::vector<std::string> labels;
  for (const Series& series : series_of(figure)) labels.push_back(series.label);
  CHECK(labels == std::vector<std::string>{"batch 32", "batch 64"});
  CHECK(figure.own_legend);
  CHECK(contains(page_html(content), "</svg>batch 64</li>"));
}

}  // namespace
}  // namespace trainyard::reports
