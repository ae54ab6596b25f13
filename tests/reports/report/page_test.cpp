// Page, figures and files made from invented results.
#include "reports/report/page.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <sstream>

#include <doctest/doctest.h>
#include <librsvg/rsvg.h>

#include "base/text.h"
#include "reports/analysis/analysis.h"
#include "reports/analysis/parts.h"
#include "reports/content/curves.h"
#include "reports/draw/assets.h"
#include "reports/draw/drawing.h"
#include "reports/draw/image.h"
#include "reports/draw/svg.h"
#include "reports/report/report.h"
#include "tests/reports/support/made_results.h"
#include "tests/support/contains.h"

namespace trainyard::reports {
namespace {

const std::string hostile = "</script><img src=x onerror=alert(1)>";

// True if librsvg can parse `svg`. It uses libxml2, so the XML is well-formed.
bool is_well_formed(const std::string& svg) {
  GError* error = nullptr;
  RsvgHandle* handle =
      rsvg_handle_new_from_data(reinterpret_cast<const guint8*>(svg.data()), svg.size(), &error);
  if (error != nullptr) g_error_free(error);
  if (handle == nullptr) return false;
  g_object_unref(handle);
  return true;
}

TEST_CASE("every figure is well-formed SVG without NaN or infinity") {
  for (const int seeds : {1, 2, 5}) {
    for (const int epochs : {1, 2, 20}) {
      const ReportData data = invented({.seeds = seeds, .epochs = epochs});
      const Content content = compose(data);
      const std::vector<const Figure*> figures = all_figures(content);
      for (const Figure* figure : figures) {
        const std::string svg = svg_document(*figure);
        CHECK(is_well_formed(svg));
        CHECK_FALSE(contains(svg, "nan"));
        CHECK_FALSE(contains(svg, "NaN"));
        CHECK_FALSE(contains(svg, "inf"));
        CHECK_FALSE(contains(svg, "var("));
      }
    }
  }
}

TEST_CASE("the panels of a model are the six of the published report, and loss over time") {
  const ReportData data = invented();
  const Content content = compose(data);
  std::vector<std::string> names;
  for (const Figure& figure : content.figures.front().panels)
    if (!figure.slug.ends_with("-difference")) names.push_back(figure.slug);
  CHECK(names == std::vector<std::string>{"mlp-train-accuracy", "mlp-validation-accuracy", "mlp-train-loss",
                                          "mlp-validation-loss", "mlp-train-seconds",
                                          "mlp-validation-seconds", "mlp-validation-loss-over-time"});
}

TEST_CASE("the series are the arms, then each rank") {
  const ReportData data = invented();
  const Content content = compose(data);
  std::vector<std::string> labels;
  for (const Series& series : series_of(content.figures.front().panels.front()))
    labels.push_back(series.label);
  CHECK(labels == std::vector<std::string>{"single", "ddp average", "ddp rank 0", "ddp rank 1"});
}

TEST_CASE("the series of a strategy with stages are its replicas") {
  const ReportData data = invented({.models = {"mlp"}, .strategies = {"single", "pipeline", "mp-ddp"}});
  const Content content = compose(data);
  std::vector<std::string> labels;
  for (const Series& series : series_of(content.figures.front().panels.front()))
    labels.push_back(series.label);
  CHECK(labels == std::vector<std::string>{"single", "pipeline", "mp-ddp average", "mp-ddp replica 0",
                                           "mp-ddp replica 1"});
}

TEST_CASE("a point is the mean over seeds with a t interval") {
  // The mean is 2 and s = 1. With two degrees of freedom t = 0.95·√(2/(1 − 0.95²)) in closed form, so the
  // interval is 2 ± t/√3.
  const double t = 0.95 * std::sqrt(2 / (1 - 0.95 * 0.95));
  const Point point = mean_point(1, {1, 2, 3});
  CHECK(point.mean == doctest::Approx(2));
  CHECK(point.high == doctest::Approx(2 + t / std::sqrt(3.0)).epsilon(1e-12));
  CHECK(std::isnan(mean_point(1, {5}).low));
}

TEST_CASE("one seed has no band, and the caption explains this") {
  const ReportData data = invented({.seeds = 1});
  const Content content = compose(data);
  const Figure& figure = content.figures.front().panels.front();
  CHECK(figure.caption == "One seed, so no interval is shown.");
  CHECK_FALSE(contains(svg_document(figure), "class=\"b\""));
}

TEST_CASE("a metric that a model does not have is named under its heading and has no panel") {
  ReportData data = invented({.models = {"conv-autoencoder"}});
  for (std::vector<db::EpochRow>* rows : {&data.averages, &data.replicas}) {
    for (db::EpochRow& row : *rows) row["train_accuracy"] = row["validation_accuracy"] = std::nan("");
  }
  const Content content = compose(data);
  for (const Figure& figure : content.figures.front().panels) {
    CHECK(figure.missing.empty());
    CHECK_FALSE(contains(figure.slug, "accuracy"));
  }
  const std::string page = page_html(content);
  CHECK(contains(page, ">Not defined for this task: training accuracy, validation accuracy.</p>"));
  CHECK_FALSE(contains(page, "<div class=\"empty\">"));
  CHECK_FALSE(contains(page, "NaN"));
}

TEST_CASE("no table has a column for a metric without any value") {
  const Content content = compose(invented({.models = {"conv-autoencoder"}}));
  const std::string page = page_html(content, {});
  const Comparison& comparison = content.report->comparisons.front();
  for (const char* accuracy :
       {">Validation accuracy<", "Val. acc. %", "Test acc. %", "validation accuracy ("})
    CHECK_MESSAGE(!contains(page, accuracy), accuracy);
  for (const char* shown : {">Validation loss<", "Val. loss", "validation loss ("})
    CHECK_MESSAGE(contains(page, shown), shown);
  CHECK_FALSE(contains(page, "not defined for the model"));
  CHECK(models_table(comparison).columns.size() == 3);  // model, loss, time
  CHECK_FALSE(contains(csv_table(run_numbers(*content.report)), "accuracy"));
  CHECK(contains(paper_tables(*content.report).front().table.caption,
                 "Verdicts on validation loss and training time per epoch: "));
}

TEST_CASE("training time is the median without the first epoch, and validation time is the sum") {
  ReportData data = invented({.models = {"mlp"}, .strategies = {"single"}, .seeds = 1, .epochs = 4});
  constexpr std::array seconds{9.0, 1.0, 2.0, 6.0};
  for (db::EpochRow& row : data.averages)
    for (const db::MetricColumn column :
         {db::MetricColumn("train_seconds"), db::MetricColumn("validation_seconds"),
          db::MetricColumn("train_loss")})
      row[column] = seconds.at(static_cast<std::size_t>(row.epoch - 1));
  const auto final_of_metric = [&](const std::string& metric) {
    const Report report = make_report(data);
    const std::vector<Curve>& curves = report.comparisons.front().cells.front().baseline.curves;
    return std::ranges::find(curves, metric, &Curve::metric)->final->mean;
  };
  CHECK(final_of_metric("train-seconds") == 2);
  CHECK(final_of_metric("validation-seconds") == 18);
  CHECK(final_of_metric("train-loss") == 6);
  std::erase_if(data.averages, [](const db::EpochRow& row) { return row.epoch > 2; });
  CHECK(final_of_metric("train-seconds") == 5);  // with the first epoch, because there are only two
}

TEST_CASE("the same data gives the same bytes") {
  const ReportData data = invented();
  const ReportData again = invented();
  CHECK(page_html(compose(data), {"svg"}) == page_html(compose(again), {"svg"}));
}

TEST_CASE("the page starts with the answer, the table, the published study, the machine and the caveats") {
  ReportData data = invented();
  data.plan.published.emplace();
  data.plan.published->sources = {{"paper", {{"single", "one card"}}, {}, {}}};
  const Content content = compose(data);
  const std::string page = page_html(content);
  std::size_t last = 0;
  for (const std::string& part :
       {std::string("<h1>first sweep</h1>"),
        std::string("Effect of strategy (ddp against single) on MLP and CNN"),
        escaped(content.answer.paragraphs.front().front()),
        std::string("In each cell: validation accuracy (margin"), std::string("<dt>Published study</dt>"),
        std::string("<dt>Compared</dt>"), std::string("<dt>Machine</dt>"), std::string("<h2>Caveats</h2>"),
        std::string("Stand-in data: "), std::string("conditions of a fair comparison"), std::string("<nav"),
        std::string("<h2>Provenance</h2>")}) {
    const std::size_t place = page.find(part);
    REQUIRE_MESSAGE(place != std::string::npos, part);
    CHECK_MESSAGE(place > last, part);
    last = place;
  }
}

TEST_CASE("conditions that hold are folded, and caveats beyond the eighth are too") {
  Report report = make_report(invented());
  report.fairness.clear();
  for (int i = 0; i < 11; ++i) report.fairness.push_back({Severity::note, "note " + std::to_string(i)});
  report.fairness.push_back({Severity::unfair, "unfair"});
  report.fairness.push_back({Severity::fair, "fair"});
  const std::string top = page_top(compose(report)).str();
  CHECK(top.find("unfair") < top.find("note 0"));
  CHECK(top.find("note 6") < top.find("<details>"));
  CHECK(top.find("<details><summary>4 more caveats</summary>") < top.find("note 7"));
  CHECK(contains(top, "<summary>✓ 1 condition of a fair comparison holds, as the records show</summary>"));
}

TEST_CASE(
    "the first table has a row per model, a column per arm, and three symbols with words in each cell") {
  const Content content = compose(invented({.strategies = {"single", "ddp", "mp-ddp"}}));
  const std::string top = page_top(content).str();
  const std::string table = top.substr(top.find("class=\"shape\""));
  const auto count = [&](const std::string& part) {
    int found = 0;
    for (std::size_t at = table.find(part); at != std::string::npos; at = table.find(part, at + 1)) ++found;
    return found;
  };
  CHECK(count("<tr><th scope=\"row\">") == 2);
  CHECK(count("class=\"sym ") == 2 * 2 * 3);
  CHECK(count("aria-label=\"Validation accuracy: ") == 2 * 2);
  CHECK(count("aria-label=\"Training time per epoch: ") == 2 * 2);
}

TEST_CASE("the settings have each value once, with its models or strategies") {
  Report report = make_report(invented());
  for (RunRow& run : report.runs) {
    run.settings["optimizer"] = std::string("adam");
    run.settings["learning_rate"] = run.model == "mlp" ? 0.05 : 0.02;
    run.settings["replicas"] = std::int64_t{run.strategy == "ddp" ? 2 : 1};
  }
  const std::string text = markdown_table(settings_table(report));
  CHECK(contains(text, "| optimizer | adam |"));
  CHECK(contains(text, "| learning rate | 0.02 (CNN), 0.05 (MLP) |"));
  CHECK(contains(text, "| replicas | 1 (single), 2 (ddp) |"));
  CHECK(contains(page_html(compose(report)), "<h2>Settings of the runs</h2>"));
}

TEST_CASE("the tooltip of a verdict has p = or p <, never both") {
  ReportData data = invented({.models = {"mlp"}});
  set_final(data, "mlp", "single", "epoch_train_seconds", [](int seed) { return 2 + 0.001 * seed; });
  set_final(data, "mlp", "ddp", "epoch_train_seconds", [](int seed) { return 1 + 0.0007 * seed; });
  const std::string page = page_html(compose(data));
  CHECK(contains(page, ", p &lt; 0.0001 (better"));
  CHECK_FALSE(contains(page, "p = &lt;"));
}

TEST_CASE("hostile names are harmless everywhere") {
  ReportData data = invented({.models = {hostile}, .strategies = {"single", "ddp\" onload=\"alert(2)"}});
  data.experiment = hostile;
  for (db::RunSummary& run : data.runs) run.dataset = run.failure = hostile;
  run_of(data, hostile, "single", 0).status = "failed";
  const Content content = compose(data);
  const std::string page = page_html(content, {"svg", "png"});
  CHECK_FALSE(contains(page, "<img"));
  CHECK_FALSE(contains(page, "onload=\""));
  CHECK(contains(page, "&lt;/script&gt;&lt;img src=x onerror=alert(1)&gt;"));
  for (const Figure* figure : all_figures(content)) {
    CHECK(is_well_formed(svg_document(*figure)));
    CHECK(figure->slug.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789.-") == std::string::npos);
  }
}

TEST_CASE("the page is one file without external resources and style attributes") {
  const ReportData data = invented();
  const std::string page = page_html(compose(data));
  CHECK_FALSE(contains(page, " style="));
  CHECK_FALSE(contains(page, "src="));
  CHECK_FALSE(contains(page, "http://www.w3.org/1999"));
  CHECK_FALSE(contains(page, "@import"));
  CHECK(contains(page, "default-src &#39;none&#39;"));
  CHECK(page.size() < 600 * 1024);
}

TEST_CASE("the hash of a content security policy is SHA-256 in base 64") {
  // The example of the CSP specification, level 2, section 7.17.
  CHECK(policy_hash("alert('Hello, world.');") == "sha256-qznLcsROx4GACP2dm0UCKCzCG+HiZ1guq6ZZDob/Tng=");
}

TEST_CASE("the policy has the hashes of the style sheet and the script in the page") {
  const ReportData data = invented();
  const std::string page = page_html(compose(data));
  for (const std::string tag : {"style", "script"}) {
    const std::size_t begin = page.find("<" + tag + ">") + tag.size() + 2;
    const std::string content = page.substr(begin, page.find("</" + tag + ">") - begin);
    CHECK(contains(page, policy_hash(content)));
  }
}

TEST_CASE("a PNG has its signature and twice the size of the figure") {
  const ReportData data = invented({.models = {"mlp"}, .seeds = 3});
  const Content content = compose(data);
  const std::string png = png_of(svg_document(content.figures.front().panels.front()));
  REQUIRE(png.size() > 4000);
  CHECK(png.substr(0, 8) == "\x89PNG\r\n\x1a\n");
  const auto number_at = [&](std::size_t at) {
    unsigned value = 0;
    for (std::size_t i = 0; i < 4; ++i) value = value * 256 + static_cast<unsigned char>(png[at + i]);
    return value;
  };
  CHECK(number_at(16) == 2 * (static_cast<unsigned>(panel_width) + 28));
  CHECK(number_at(20) > 2 * static_cast<unsigned>(panel_height));
}

TEST_CASE("text is escaped, control characters are removed, and invalid UTF-8 is replaced") {
  CHECK(escaped("<a href='\"&\"'>") == "&lt;a href=&#39;&quot;&amp;&quot;&#39;&gt;");
  CHECK(escaped(std::string("a\0b\x1b[31m", 8)) == "ab[31m");
  CHECK(escaped("\xff\xc3\xa9\xc3") == "\xef\xbf\xbd\xc3\xa9\xef\xbf\xbd");
  CHECK(escaped("\xed\xa0\x80") == "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");  // a lone surrogate
  CHECK(escaped("\xef\xbf\xbe") == "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");  // U+FFFE is not an XML character
}

TEST_CASE("the terminal table fits the terminal, and in a file no name is cut") {
  const std::string long_name = "a model with a name that is longer than a column";
  const ReportData data = invented({.models = {"mlp", long_name}, .strategies = {"single", "ddp", "mp-ddp"}});
  for (const std::size_t width : {80, 100, 40}) {
    std::istringstream lines(terminal_table(compose(data), width));
    for (std::string line; std::getline(lines, line);) CHECK_MESSAGE(trainyard::columns(line) <= width, line);
  }
  const std::string text = terminal_table(compose(data));
  for (const char* row : {"IMPROVES", "\nMLP ", " mp-ddp ", "95 % interval"}) CHECK(contains(text, row));
  CHECK(contains(text, "\n" + long_name + " "));
  CHECK_FALSE(contains(text, "…"));
  CHECK(contains(text, "warning: Stand-in data: synthetic-digits instead of mnist"));
}

}  // namespace
}  // namespace trainyard::reports
