// The page in a real Chromium: at phone and desktop width, light and dark, with a keyboard, and with hostile
// names.
#include <fstream>

#include <doctest/doctest.h>

#include "reports/content/content.h"
#include "reports/report/page.h"
#include "tests/db/support/yard.h"
#include "tests/reports/support/made_results.h"
#include "tests/reports/support/page_browser.h"

namespace trainyard::reports {
namespace {

using tests::Browser;
using tests::View;

const std::string hostile = "</script><img src=x onerror=\"window.hostile=1\"><svg onload=window.hostile=1>";

// Writes a page with three cells, hostile names in one of them, published numbers and one failed run.
void write_page(const std::filesystem::path& file) {
  ReportData data =
      invented({.models = {"mlp", "conv-autoencoder", hostile}, .strategies = {"single", "ddp", "mp-ddp"}});
  data.experiment = hostile;
  experiments::Published published{"p.toml", "", {{hostile, {{"single", hostile}}, {}}}};
  published.sources.front().series = {{"mlp", "single", "train_accuracy", {{1, 0.7}, {6, 0.76}}},
                                      {"mlp", hostile, "train_seconds", {{0, 220}}}};
  data.plan.published = published;
  db::RunSummary& failed = run_of(data, hostile, "single", 4);
  failed.status = "failed";
  failed.failure = hostile;
  std::ofstream(file, std::ios::binary) << page_html(compose(data), {"svg"});
}

TEST_CASE("the page works in Chromium at phone and desktop width, light and dark, with hostile names") {
  Browser* page = page_browser();
  if (page == nullptr) return;
  const db::testing::TemporaryFolder folder;
  write_page(folder / "index.html");
  std::string backgrounds;
  for (const View& view : {View{1280, 900, false}, {1280, 900, true}, {390, 844, false}, {390, 844, true}}) {
    CAPTURE(view.width);
    CAPTURE(view.dark);
    page->open(folder / "index.html", view);
    keep_picture(*page, "page-" + std::to_string(view.width) + (view.dark ? "-dark" : "-light"));
    CHECK(page->evaluate("document.documentElement.scrollWidth <= innerWidth") == true);
    CHECK(page->evaluate("document.querySelectorAll('img').length") == 0);
    CHECK(page->evaluate("'hostile' in window") == false);
    // Every figure has a description, its numbers and its query.
    CHECK(page->evaluate("[...document.querySelectorAll('figure')].filter(f => !f.querySelector('.empty') && "
                         "!(f.querySelector('svg[role=img]').getAttribute('aria-label').length > 20 && "
                         "f.querySelector('.csv').textContent.split('\\n').length > 2 && "
                         "f.querySelector('details pre').textContent))"
                         ".map(f => f.id)") == nlohmann::json::array());
    CHECK(page->evaluate("document.querySelectorAll('figure').length") > 27);
    CHECK(page->evaluate("document.documentElement.classList.contains('scripted')") == true);
    backgrounds += page->evaluate("getComputedStyle(document.body).backgroundColor").get<std::string>() + ";";
    CHECK(page->errors() == std::vector<std::string>{});
    CHECK(page->requests() == std::vector<std::string>{});
  }
  CHECK(backgrounds == "rgb(252, 252, 251);rgb(19, 21, 24);rgb(252, 252, 251);rgb(19, 21, 24);");
}

TEST_CASE("with the keyboard a user can read epochs, sort and filter runs, and hide series") {
  Browser* page = page_browser();
  if (page == nullptr) return;
  const db::testing::TemporaryFolder folder;
  write_page(folder / "index.html");
  page->open(folder / "index.html", {});
  const auto said = [&] {
    return page->evaluate("document.querySelector('#live').textContent").get<std::string>();
  };
  page->evaluate("document.querySelector('svg[data-dx]').focus()");
  page->press("ArrowRight");
  page->press("ArrowRight");
  CHECK(said().starts_with("Epoch 2: single "));
  keep_picture(*page, "crosshair");
  page->press("End");
  CHECK(said().starts_with("Epoch 6: "));
  page->press("Home");
  CHECK(said().starts_with("Epoch 1: "));
  CHECK(page->evaluate("document.querySelector('#tip').hidden") == false);
  page->press("Escape");
  CHECK(page->evaluate("document.querySelector('#tip').hidden") == true);

  page->evaluate("document.querySelector('#runs th:nth-child(4) button').click()");  // by seed, ascending
  CHECK(page->evaluate("document.querySelector('#runs tbody tr td:nth-child(4)').textContent") == "0");
  page->evaluate("document.querySelector('#runs th:nth-child(4) button').click()");
  CHECK(page->evaluate("document.querySelector('#runs tbody tr td:nth-child(4)').textContent") == "4");
  page->evaluate(
      "const f = document.querySelector('#filter'); f.value = 'mp-ddp'; "
      "f.dispatchEvent(new Event('input'))");
  CHECK(page->evaluate("document.querySelector('#filtered').textContent") == "15 runs");

  page->evaluate(
      "document.querySelector('svg[data-dx]').closest('figure').querySelector('details').open = true");
  CHECK(page->becomes_true("document.querySelectorAll('figure details[open] .dt tbody tr').length > 5"));
  page->evaluate("document.querySelector('.keys button[data-key=c-single]').click()");
  CHECK(page->evaluate("[...document.querySelectorAll('main figure:not(.own) .chart g.c-single')].every("
                       "g => getComputedStyle(g).display === 'none')") == true);
  page->evaluate("document.querySelector('#theme').click()");
  CHECK(page->evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(19, 21, 24)");
  CHECK(page->errors() == std::vector<std::string>{});
}

TEST_CASE("energy has a column in the verdict table and a panel that fits a phone") {
  Browser* page = page_browser();
  if (page == nullptr) return;
  const db::testing::TemporaryFolder folder;
  const ReportData data = invented({.models = {"mlp", "cnn"}, .energy = true});
  std::ofstream(folder / "index.html", std::ios::binary) << page_html(compose(data), {"svg"});
  page->open(folder / "index.html", {});
  keep_picture(*page, "energy");
  page->evaluate(
      "[...document.querySelectorAll('figure')].find(figure => "
      "figure.textContent.includes('Training energy per epoch')).scrollIntoView({behavior: 'instant'})");
  keep_picture(*page, "energy-panel");
  CHECK(page->evaluate("[...document.querySelectorAll('th')].some(th => th.textContent.startsWith("
                       "'Training energy per epoch'))") == true);
  CHECK(page->evaluate("document.documentElement.scrollWidth <= innerWidth") == true);
  CHECK(page->errors() == std::vector<std::string>{});
}

TEST_CASE("ranks are hidden until one click, with scripts and without") {
  Browser* page = page_browser();
  if (page == nullptr) return;
  const db::testing::TemporaryFolder folder;
  write_page(folder / "index.html");
  const std::string shown =
      "[...document.querySelectorAll('main .chart g.r')].filter(g => getComputedStyle(g).display !== "
      "'none').length";
  page->open(folder / "index.html", {.scripts = false});
  CHECK(page->evaluate(shown) == 0);
  CHECK(page->evaluate("document.querySelectorAll('main .chart g.r').length") > 50);
  page->open(folder / "index.html", {});
  CHECK(page->evaluate(shown) == 0);
  const auto names = [&] {
    page->evaluate("document.querySelector('svg[data-dx]').focus()");
    page->press("End");
    return page->evaluate("[...document.querySelectorAll('#tip td:first-child')].map(td => td.textContent)");
  };
  CHECK(names() == nlohmann::json({"single", "ddp average", "mp-ddp average"}));
  CHECK(page->evaluate("document.querySelector('#ranks').getAttribute('aria-pressed')") == "false");
  page->evaluate("document.querySelector('#ranks').click()");
  CHECK(page->evaluate("document.querySelector('#ranks').getAttribute('aria-pressed')") == "true");
  CHECK(page->evaluate(shown) > 50);
  CHECK(names().size() == 7);
  keep_picture(*page, "ranks");
  // A hidden arm is not read aloud, whatever its label is in a figure: "ddp slowest rank" for a time.
  page->evaluate("document.querySelector('.keys button[data-key=c-ddp]').click()");
  page->evaluate("document.querySelector('#figure-mlp-train-seconds svg[data-dx]').focus()");
  page->press("End");
  CHECK(page->evaluate("document.querySelector('#tip').textContent.includes('ddp slowest rank')") == true);
  CHECK(page->evaluate(
            "[...document.querySelectorAll('#tip td')].some(td => td.textContent === 'ddp slowest rank')") ==
        false);
  page->evaluate("document.querySelector('#ranks').click()");
  CHECK(page->evaluate(shown) == 0);
  CHECK(page->errors() == std::vector<std::string>{});
}

TEST_CASE("without scripts the page has the same content") {
  Browser* page = page_browser();
  if (page == nullptr) return;
  const db::testing::TemporaryFolder folder;
  write_page(folder / "index.html");
  page->open(folder / "index.html", {.scripts = false});
  CHECK(page->evaluate("document.documentElement.classList.contains('scripted')") == false);
  CHECK(page->evaluate("document.querySelectorAll('figure svg[role=img]').length") > 20);
  CHECK(page->evaluate("document.querySelectorAll('#runs tbody tr').length") == 45);
  CHECK(page->evaluate("getComputedStyle(document.querySelector('#filter').parentNode).display") == "none");
}

}  // namespace
}  // namespace trainyard::reports
