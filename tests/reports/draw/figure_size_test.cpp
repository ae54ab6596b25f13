// Figures with a size on paper: lengths, layout, and captions as files.
#include "reports/format/figure_size.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <regex>
#include <set>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "reports/content/content.h"
#include "reports/draw/drawing.h"
#include "reports/draw/scale.h"
#include "reports/draw/svg.h"
#include "reports/report/page.h"
#include "reports/report/report.h"
#include "tests/reports/support/made_results.h"
#include "tests/reports/support/page_browser.h"
#include "tests/support/contains.h"
#include "tests/support/scratch_folder.h"

namespace trainyard::reports {
namespace {

constexpr double tenth_of_a_millimetre = 0.1 / 25.4 * 96;

FigureSize paper(const std::string& width, double font, const std::string& height = "") {
  return figure_size(width, height, font, false);
}

// Every kind of metric, seven arms and ranks per model, published numbers, and names of usual length.
ReportData many_arms() {
  ReportData data = invented({.models = {"mlp", "conv-autoencoder", "seq2seq"},
                              .strategies = {"single", "ddp", "mp-ddp"},
                              .seeds = 4,
                              .epochs = 20,
                              .energy = true});
  experiments::Published published{"p.toml", "", {{"a study", {}, {}}}};
  published.sources.front().series = {{"mlp", "single", "train_accuracy", {{1, 0.7}, {20, 0.76}}},
                                      {"mlp", "ddp", "train_accuracy", {{1, 0.6}, {30, 0.75}}},
                                      {"mlp", "ddp", "train_seconds", {{0, 2200}}}};
  data.plan.published = published;
  for (const char* model : {"mlp", "seq2seq"}) add_step(data, run_of(data, model, "mp-ddp", 1));
  return data;
}

// Curves over two numeric axes with six and five values. Both axes are logarithmic.
ReportData wide_grid() {
  ReportData data = study_of({"batch", "learning_rate"}, "16");
  double mean = 0.4;
  for (const std::int64_t batch : {16, 32, 64, 128, 256, 512})
    for (const double rate : {0.0001, 0.001, 0.01, 0.02, 0.1})
      add_variant(data, {{"batch", batch}, {"learning_rate", rate}}, mean += 0.011);
  return data;
}

// A text of an SVG document with its box, in CSS pixels. The widths are those of the font DejaVu Sans.
struct SetText {
  std::string text;
  double left = 0, right = 0, top = 0, bottom = 0;
};

// The number behind `start`, which must end with `end`, else 0. std::regex takes minutes under sanitizers.
double number_behind(const std::string& element, const std::string& start, char end) {
  const std::size_t at = element.find(start);
  if (at == std::string::npos) return 0;
  char* rest = nullptr;
  const double number = std::strtod(element.c_str() + at + start.size(), &rest);
  return *rest == end ? number : 0;
}

double number_in(const std::string& element, const std::string& name) {
  return number_behind(element, " " + name + "=\"", '"');
}

std::string plain(std::string text) {
  for (const auto& [entity, sign] : std::vector<std::pair<std::string, std::string>>{
           {"&lt;", "<"}, {"&gt;", ">"}, {"&#39;", "'"}, {"&quot;", "\""}, {"&amp;", "&"}})
    for (std::size_t at = 0; (at = text.find(entity, at)) != std::string::npos; ++at)
      text.replace(at, entity.size(), sign);
  return text;
}

std::vector<SetText> texts_of(const std::string& svg, double font) {
  std::vector<SetText> texts;
  std::vector<std::pair<double, double>> shifts{{0, 0}};
  for (std::size_t at = svg.find('<'); at != std::string::npos; at = svg.find('<', at + 1)) {
    const std::string_view rest = std::string_view(svg).substr(at);
    if (rest.starts_with("</g>")) shifts.pop_back();
    const std::size_t end = rest.find('>');
    const std::string element(rest.substr(0, end));
    auto [x, y] = shifts.back();
    if (element == "<g" || element.starts_with("<g ")) {
      if (const std::size_t shift = element.find("translate("); shift != std::string::npos) {
        x += number_behind(element, "translate(", ' ');
        y += number_behind(element.substr(shift), " ", ')');
      }
      shifts.emplace_back(x, y);
    }
    const std::size_t close = rest.find('<', 1);
    if (!element.starts_with("<text ") || !rest.substr(close).starts_with("</text>")) continue;
    const std::string text = plain(std::string(rest.substr(end + 1, close - end - 1)));
    const bool bold = contains(element, "class=\"title\"") || contains(element, "class=\"mn\"");
    const double width = text_width(text, font, bold ? Weight::bold : Weight::normal);
    x += number_in(element, "x") - (contains(element, "class=\"e\"")   ? width
                                    : contains(element, "class=\"mid") ? width / 2
                                                                       : 0);
    y += number_in(element, "y");
    texts.push_back({text, x, x + width, y - 0.75 * font, y + 0.2 * font});
  }
  return texts;
}

bool overlap(const SetText& a, const SetText& b) {
  return a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
}

double width_of(const std::string& svg) {
  return number_in(svg.substr(svg.find("<svg"), 300), "width");
}

double height_of(const std::string& svg) {
  return number_in(svg.substr(svg.find("<svg"), 300), "height");
}

void check_layout(const Figure& figure, const FigureSize& size) {
  CAPTURE(figure.slug);
  CAPTURE(size.width);
  const std::string svg = svg_document(figure, size);
  CHECK(std::abs(width_of(svg) - size.width) < tenth_of_a_millimetre);
  const std::vector<SetText> texts = texts_of(svg, size.font);
  CHECK(texts.size() > 3);
  const double height = height_of(svg);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    CAPTURE(texts[i].text);
    CHECK(texts[i].left >= -0.2);
    CHECK(texts[i].right <= size.width + 0.2);
    CHECK(texts[i].top >= -0.2);
    CHECK(texts[i].bottom <= height + 0.2);
    for (std::size_t k = i + 1; k < texts.size(); ++k)
      if (overlap(texts[i], texts[k])) FAIL_CHECK("it touches " << texts[k].text);
  }
}

TEST_CASE("a length has a number and one of four units, and a point is that of LaTeX") {
  CHECK(pixels_of_length("--width", "2.54cm") == doctest::Approx(96));
  CHECK(pixels_of_length("--width", "25.4mm") == doctest::Approx(96));
  CHECK(pixels_of_length("--width", "1in") == doctest::Approx(96));
  CHECK(pixels_of_length("--width", "72.27pt") == doctest::Approx(96));
  for (const char* wrong : {"7", "7 cm", "7em", "cm", "", "-7cm", "0cm", "nancm", "infcm", "7cmm", "200cm"}) {
    CAPTURE(wrong);
    CHECK_THROWS_AS(pixels_of_length("--width", wrong), UserError);
  }
}

TEST_CASE("a size that cannot be drawn is a user error that says what to change") {
  CHECK_THROWS_WITH_AS(
      figure_size("3cm", "", 9, true),
      "--width 3cm is too small for text of 9 pt; give at least 5.7cm, or a smaller --font-size", UserError);
  CHECK_THROWS_WITH_AS(figure_size("7cm", "", 90, true),
                       "--font-size 90 is not between 4 and 40 points; give the font size of your captions, "
                       "as in --font-size 9",
                       UserError);
  CHECK_THROWS_WITH_AS(
      figure_size("", "", 9, true),
      "--height and --font-size need --width; add the width of the figures, as in --width 7cm", UserError);
  CHECK_THROWS_WITH_AS(
      figure_size("", "5cm", std::nullopt, true),
      "--height and --font-size need --width; add the width of the figures, as in --width 7cm", UserError);
  const ReportData data = invented({.models = {"mlp"}});
  const Content content = compose(data);
  CHECK_THROWS_AS(svg_document(content.figures.front().panels.front(), paper("7cm", 9, "2cm")), UserError);
}

// Whether figures of this kind are among those that the tests below draw.
template <typename Picture>
bool has_kind(const Content& content, const std::function<bool(const Picture&)>& wanted) {
  return std::ranges::any_of(all_figures(content), [&](const Figure* figure) {
    const auto* picture = std::get_if<Picture>(&figure->picture);
    return figure->missing.empty() && picture != nullptr && wanted(*picture);
  });
}

TEST_CASE("every figure has the asked width, and no text leaves it or touches another text") {
  const ReportData arms = many_arms();
  const Content of_arms = compose(arms);
  CHECK(has_kind<Bars>(of_arms, [](const Bars& bars) { return bars.groups.size() == 3; }));
  CHECK(has_kind<Spans>(of_arms, [](const Spans& spans) { return spans.rows.size() == 4; }));
  const ReportData study = wide_grid();
  const Content of_study = compose(study);
  CHECK(has_kind<Lines>(of_study, [](const Lines& lines) { return lines.x.log && !lines.x.at.empty(); }));
  for (const FigureSize& size :
       {paper("7cm", 9), paper("60mm", 9), paper("252pt", 8), paper("12cm", 10), paper("17cm", 11)})
    for (const Content* content : {&of_arms, &of_study})
      for (const Figure* figure : all_figures(*content)) {
        if (!figure->missing.empty()) continue;
        check_layout(*figure, size);
        check_layout(without_ranks(*figure), size);
      }
}

TEST_CASE("names of groups of bars that would touch are in several rows, on the page too") {
  std::vector<std::string> models;
  for (const char* model : {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"})
    models.push_back(std::string(model) + "-model-with-a-long-name");
  const ReportData data = invented({.models = models});
  const Content content = compose(data);
  const Figure& figure = content.scaling.front();
  check_layout(figure, paper("12cm", 9));
  const Drawing drawing = drawing_of(figure, std::get<Bars>(figure.picture), {});
  CHECK(drawing.width == page_width);
  CHECK(drawing.height > panel_height);
  CHECK(contains(svg_document(figure), ">l-model-with-a-long-name</text>"));
}

TEST_CASE("long names are broken into lines in a narrow figure, and no letter is lost") {
  const std::string model =
      "a-model-with-a-name-that-is-much-wider-than-seven-centimetres, learning_rate 0.0001";
  const ReportData data =
      invented({.models = {model}, .strategies = {"single", "our-own-strategy-of-three-machines"}});
  const Content content = compose(data);
  for (const Figure* figure : all_figures(content)) {
    if (!figure->missing.empty()) continue;
    check_layout(*figure, paper("7cm", 9));
    std::string all;
    for (const SetText& text : texts_of(svg_document(*figure, figure_size("7cm", "", 9, true)), 12))
      all += text.text;
    std::erase(all, ' ');
    CHECK(contains(all, "our-own-strategy-of-three-machines"));
  }
}

TEST_CASE("all text of a sized figure has the asked font size") {
  tests::Browser* browser = page_browser();
  if (browser == nullptr) return;
  const ReportData data = many_arms();
  const Content content = compose(data);
  const tests::ScratchFolder folder;
  std::set<std::string> kinds;
  for (const Figure* figure : all_figures(content)) {
    if (!figure->missing.empty() || !kinds.insert(std::to_string(figure->picture.index())).second) continue;
    CAPTURE(figure->slug);
    tests::write_text(folder / "figure.svg", svg_document(*figure, figure_size("7cm", "", 9, true)));
    browser->open(folder / "figure.svg", {});
    // 9 pt are 11.9552 CSS pixels.
    CHECK(browser->evaluate("[...new Set([...document.querySelectorAll('text')].map(text => "
                            "Math.round(parseFloat(getComputedStyle(text).fontSize) * 100)))]") ==
          nlohmann::json::array({1196}));
  }
  CHECK(kinds.size() > 2);
}

TEST_CASE("a height is that of the whole picture of curves and bars") {
  const ReportData data = invented({.models = {"mlp"}});
  const Content content = compose(data);
  for (const Figure& panel : content.figures.front().panels) {
    if (!panel.missing.empty()) continue;
    const std::string svg = svg_document(panel, paper("7cm", 9, "6cm"));
    CHECK(std::abs(height_of(svg) - 6 / 2.54 * 96) < tenth_of_a_millimetre);
    check_layout(panel, paper("7cm", 9, "6cm"));
  }
}

TEST_CASE("a narrow figure leaves out the strip of final values, and the page has it") {
  const ReportData data = invented({.models = {"mlp"}});
  const Content content = compose(data);
  const Figure& figure = content.figures.front().panels.front();
  const std::string label = ">" + std::get<Lines>(figure.picture).final_label + "<";
  CHECK(contains(svg_document(figure), label));
  CHECK_FALSE(contains(svg_document(figure, paper("10cm", 9)), label));
  CHECK(contains(svg_document(figure, paper("10.2cm", 9)), label));  // 32 times 9 pt
}

TEST_CASE("a narrow forest plot has its columns below each other") {
  const ReportData data = many_arms();
  const Content content = compose(data);
  const Figure& figure = content.effects.front().front();
  const auto heads = [&](const FigureSize& size) {
    std::set<double> tops;
    std::set<std::string> titles;
    for (const EffectColumn& column : std::get<Effects>(figure.picture).columns) titles.insert(column.title);
    for (const SetText& text : texts_of(svg_document(figure, size), 12))
      if (titles.contains(text.text)) tops.insert(text.top);
    return tops.size();
  };
  const std::size_t columns = std::get<Effects>(figure.picture).columns.size();
  REQUIRE(columns > 1);
  CHECK(heads({}) == 1);
  CHECK(heads(paper("7cm", 9)) == columns);
}

TEST_CASE("a caption explains the final values at the right only if the figure has them") {
  const ReportData data = invented({.models = {"mlp"}});
  const Content content = compose(data);
  const std::vector<Figure>& panels = content.figures.front().panels;
  const auto times = std::ranges::find(panels, "mlp-train-seconds", &Figure::slug);
  REQUIRE(times != panels.end());
  const std::string right = "Right: median over epochs after the first.";
  const auto lines_of = [](const std::string& text) {  // a wrapped caption as one line
    static const std::regex tags("<[^>]*>");
    return std::regex_replace(text, tags, " ");
  };
  CHECK(contains(page_html(content), right));
  const FigureSize wide = figure_size("16cm", "", 9, true);
  const FigureSize narrow = figure_size("7cm", "", 9, true);
  CHECK(contains(lines_of(svg_document(*times, wide)), "Right:"));
  CHECK_FALSE(contains(lines_of(svg_document(*times, narrow)), "Right:"));
  const tests::ScratchFolder folder;
  write_report(content, folder.path(), {"svg", "markdown"}, paper("7cm", 9));
  CHECK_FALSE(contains(tests::read_text(folder / "figures/mlp-train-seconds.txt"), "Right:"));
  CHECK_FALSE(contains(tests::read_text(folder / "report.md"), "Right:"));
  CHECK(contains(markdown_report(content, {"svg"}), right));
}

TEST_CASE("without titles the caption is in a text file and not in the picture") {
  const tests::ScratchFolder folder;
  const ReportData data = invented({.models = {"mlp"}});
  const Content content = compose(data);
  write_report(content, folder.path(), {"svg"}, paper("7cm", 9));
  const Figure& figure = content.figures.front().panels.front();
  CHECK(tests::read_text(folder / ("figures/" + figure.slug + ".txt")) ==
        whole_title(figure, ": ") + "\n\n" + caption_of(figure, paper("7cm", 9)) + "\n");
  const std::string svg = tests::read_text(folder / ("figures/" + figure.slug + ".svg"));
  CHECK_FALSE(contains(svg, "class=\"title\""));
  CHECK_FALSE(contains(svg, "class=\"cap\""));
  CHECK(contains(svg, ">Training accuracy, %<"));  // the values need their name and unit
  const tests::ScratchFolder other;
  write_report(content, other.path(), {"svg"});
  CHECK_FALSE(std::filesystem::exists(other / ("figures/" + figure.slug + ".txt")));
}

}  // namespace
}  // namespace trainyard::reports
