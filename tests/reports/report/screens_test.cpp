// The page on small and large screens, light and dark, in a real Chromium: nothing is cut without a hint,
// fingers can use it, and axe-core finds nothing. With TRAINYARD_SCREENSHOTS=DIR the pictures are kept.

#include <doctest/doctest.h>

#include "reports/content/content.h"
#include "reports/report/page.h"
#include "tests/reports/support/made_results.h"
#include "tests/reports/support/page_browser.h"
#include "tests/support/contains.h"
#include "tests/support/scratch_folder.h"

namespace trainyard::reports {
namespace {

using tests::Browser;
using tests::View;

ReportData six_models() {
  ReportData data = invented({.models = {"vgg11", "nbow", "seq2seq", "conv-autoencoder", "cnn", "mlp"},
                              .strategies = {"single", "ddp", "mp-ddp"},
                              .seeds = 3});
  for (const char* model : {"mlp", "cnn"}) add_step(data, run_of(data, model, "mp-ddp", 0));
  return data;
}

// Threads 1, 2 and 4. Strategies of the invented data become threads.
ReportData threads_study() {
  ReportData data = invented({.models = {"mlp"}, .strategies = {"single", "2", "4"}});
  data.plan.varied = {"threads", "seed"};
  experiments::Compare& compare = data.plan.compare.front();
  compare.axis = "threads";
  compare.baseline = "1";
  for (db::RunSummary& run : data.runs) {
    run.axes["threads"] = std::int64_t{run.strategy == "single" ? 1 : run.strategy == "2" ? 2 : 4};
    run.axes["strategy"] = run.strategy = "single";
  }
  data.history.front().compare = data.plan.compare;
  return data;
}

std::filesystem::path write_page(const tests::ScratchFolder& folder, const ReportData& data) {
  tests::write_text(folder / "index.html", page_html(compose(data), {"svg", "csv"}));
  return folder / "index.html";
}

// At three widths, light and dark.
void check_on_all_screens(const std::string& name, ReportData data) {
  const tests::ScratchFolder folder;
  for (db::FinalMetrics& final : data.finals)  // so that the widest table has all columns
    final["epoch_processor_seconds"] =
        1 + 0.01 * static_cast<double>(final.seed) +
        (final.strategy == "single" ? 0 : 1e-4 * static_cast<double>(final.seed % 2));
  const auto file = write_page(folder, data);
#ifdef __SANITIZE_ADDRESS__
  MESSAGE("only on a build without sanitizers: Chromium and axe-core are not instrumented");
  return;
#endif
  Browser* page = page_browser();
  if (page == nullptr) return;
  for (const bool dark : {false, true}) {
    for (const int width : {390, 800, 1400}) {
      CAPTURE(width);
      CAPTURE(dark);
      page->open(file,
                 {.width = width, .height = width < 500 ? 844 : 900, .dark = dark, .touch = width < 900});
      CHECK(page->evaluate("document.documentElement.scrollWidth <= innerWidth") == true);
      const bool axe = add_page_checks(*page);
      const PictureSize size =
          keep_whole_picture(*page, name + "-" + std::to_string(width) + (dark ? "-dark" : "-light"));
      CHECK(size.width == static_cast<unsigned>(width));
      CHECK(size.height > 2000);
      CHECK(wrong_in(*page, "faintDrawings") == "");
      if (axe) CHECK(wrong_in(*page, "axe") == "");
      if (!dark) {
        for (const char* check : {"outside", "cutWithoutHint", "hints", "sticky", "navigation",
                                  "smallTargets", "unevenVerdicts"}) {
          CAPTURE(check);
          CHECK(wrong_in(*page, check) == "");
        }
        // Otherwise these checks have nothing to find.
        CHECK(page->evaluate("(box => box.scrollWidth > box.clientWidth)("
                             "document.querySelector('.scroll:has(> .verd)'))") == (width < 1400));
      }
      CHECK(page->errors() == std::vector<std::string>{});
      CHECK(page->requests() == std::vector<std::string>{});
    }
  }
}

TEST_CASE(
    "a page of two models fits a phone, a tablet and a desk, light and dark, without an axe violation") {
  check_on_all_screens("two-models", invented());
}

TEST_CASE("a page of six models and three strategies fits a phone, a tablet and a desk") {
  check_on_all_screens("six-models", six_models());
}

TEST_CASE("a page of a parameter study fits a phone, a tablet and a desk") {
  check_on_all_screens("threads-study", threads_study());
}

TEST_CASE("details that a reader opens on a phone have hints and can be reached with the keyboard") {
  Browser* page = page_browser();
  if (page == nullptr) return;
  const tests::ScratchFolder folder;
  page->open(write_page(folder, invented({.models = {"mlp"}})), {.width = 390, .height = 844, .touch = true});
  const bool axe = add_page_checks(*page);
  page->evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })");
  CHECK(page->becomes_true(
      "[...document.querySelectorAll('figure details')].every(one => one.querySelector('.dt tbody tr'))"));
  CHECK(page->evaluate("[...document.querySelectorAll('details .scroll')].filter("
                       "box => box.scrollWidth > box.clientWidth).length") > 5);
  for (const char* check : {"outside", "cutWithoutHint", "hints", "smallTargets"}) {
    CAPTURE(check);
    CHECK(wrong_in(*page, check) == "");
  }
  if (axe) CHECK(wrong_in(*page, "axe") == "");
  CHECK(page->errors() == std::vector<std::string>{});
}

TEST_CASE("without scripts a cut table has its hint") {
  Browser* page = page_browser();
  if (page == nullptr) return;
  const tests::ScratchFolder folder;
  const auto file = write_page(folder, six_models());
  const auto hint = [&](int width) {
    page->open(file, {.width = width, .height = 844, .scripts = false});
    return page->evaluate(
        "getComputedStyle(document.querySelector('.scroll:has(> .verd)'), '::after').opacity");
  };
  CHECK(hint(390) == "1");
  CHECK(hint(1400) == "0");
}

const std::string tip_is_shown = "!document.querySelector('#tip').hidden";

// Taps, as a finger does: the middle of an element after it is scrolled to the middle of the window.
class Finger {
 public:
  explicit Finger(Browser& page) : page_(page) {}

  // Taps until the condition holds, at most five times: on a busy machine the browser may take a tap for a long
  // press.
  bool tap(const std::string& selector, const std::string& condition, double dx = 0) {
    const auto at = page_.evaluate(
        "(() => { const one = document.querySelector('" + selector +
        "'); one.scrollIntoView({behavior: 'instant', block: 'center'}); "
        "const box = one.getBoundingClientRect(); return new Promise(done => requestAnimationFrame(() => "
        "requestAnimationFrame(() => done([Math.min(300, box.left + box.width / 2), box.top + box.height / "
        "2])))); })()");
    return tap_at(at[0], at[1], condition, dx);
  }
  // A tap into the left margin of the page: nothing scrolls. True if it hides the tip.
  bool tap_beside() { return tap_at(4, 600, "document.querySelector('#tip').hidden", 0); }
  // What the tip says. Empty if it is hidden.
  std::string tip() {
    return page_.evaluate(
        "document.querySelector('#tip').hidden ? '' : document.querySelector('#tip').innerText");
  }

 private:
  bool tap_at(double x, double y, const std::string& condition, double dx) {
    constexpr int tries = 5;
    for (int i = 0; i < tries; ++i) {
      page_.tap(x, y, dx);
      if (page_.becomes_true(condition, 2)) return true;
    }
    return false;
  }
  Browser& page_;
};

TEST_CASE(
    "on a phone a tap shows the values of a figure and the test of a verdict, a tap beside hides them") {
  Browser* page = page_browser();
  if (page == nullptr) return;
  const tests::ScratchFolder folder;
  page->open(write_page(folder, invented()), {.width = 390, .height = 844, .touch = true});
  Finger finger(*page);
  CHECK(finger.tip().empty());

  CHECK(finger.tap("svg[data-dx]", tip_is_shown));
  const std::string curve = finger.tip();
  CHECK(curve.starts_with("Training accuracy, epoch "));
  // The value of the first series in the row of that epoch.
  const auto value = page->evaluate(
      "(() => { const figure = document.querySelector('svg[data-dx]').closest('figure'); "
      "const epoch = document.querySelector('#tip strong').textContent.split(' ').at(-1); "
      "const row = figure.querySelector('.csv').textContent.split('\\n').find(one => "
      "one.startsWith(epoch + ',')); return String(Number(Number(row.split(',')[1]).toPrecision(5))); })()");
  CHECK(contains(curve, "single\t" + value.get<std::string>() + "\t["));
  keep_picture(*page, "tap-curve");
  CHECK(finger.tap_beside());

  CHECK(finger.tap("figure:has(.csv) svg.chart:not([data-dx]):not(.bd)", tip_is_shown));
  CHECK(contains(finger.tip(), "speed-up"));
  CHECK(finger.tap_beside());

  CHECK(finger.tap(".v[title*=\"p \"]", tip_is_shown));
  keep_picture(*page, "tap-verdict");
  CHECK(contains(finger.tip(), "margin"));
  CHECK(contains(finger.tip(), "p "));
  CHECK(finger.tip() ==
        page->evaluate("document.querySelector('.v[title*=\"p \"]').title").get<std::string>());
  CHECK(finger.tap_beside());
  CHECK(page->errors() == std::vector<std::string>{});
}

TEST_CASE("on a phone a finger scrolls a wide figure sideways") {
  Browser* page = page_browser();
  if (page == nullptr) return;
  const tests::ScratchFolder folder;
  page->open(write_page(folder, invented()), {.width = 390, .height = 844, .touch = true});
  Finger finger(*page);
  CHECK(
      finger.tap(".scroll > .wide", "document.querySelector('.scroll:has(> .wide)').scrollLeft > 100", -200));
}

TEST_CASE("a printed page has the caveats that the screen folds") {
  Browser* page = page_browser();
  if (page == nullptr) return;
  const tests::ScratchFolder folder;
  const auto file = write_page(folder, invented());
  const std::string height =
      "document.querySelector('.caveats details ul').getBoundingClientRect().height > 10 && "
      "document.querySelector('.caveats details li').checkVisibility({contentVisibilityAuto: true})";
  page->open(file, {});
  CHECK(page->evaluate(height) == false);
  page->open(file, {.print = true});
  CHECK(page->evaluate(height) == true);
  CHECK(page->evaluate("document.querySelector('figure details').checkVisibility()") == false);
  keep_whole_picture(*page, "printed");
  page->open(file, {});
}

TEST_CASE("small p-values of the page are written \"p < 0.0001\"") {
  ReportData data = invented({.models = {"mlp"}});
  set_final(data, "mlp", "ddp", "epoch_train_seconds", [](int seed) { return 1.0 + 1e-5 * seed; });
  set_final(data, "mlp", "single", "epoch_train_seconds", [](int seed) { return 2.0 + 3e-5 * (seed % 3); });
  const std::string page = page_html(compose(data), {});
  CHECK(contains(page, "p &lt; 0.0001 (better"));
  CHECK(!contains(page, "= &lt;"));
}

}  // namespace
}  // namespace trainyard::reports
