#include "tests/reports/support/page_browser.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>

#include <doctest/doctest.h>

#include "tests/support/scratch_folder.h"

namespace trainyard::reports {

using tests::Browser;

namespace {

const std::filesystem::path project = TRAINYARD_SOURCE_DIR;

// tools/setup --dev installs it. Empty if it did not.
std::filesystem::path axe_core() {
  std::error_code missing;
  for (const auto& python : std::filesystem::directory_iterator(project / "build/venv/lib", missing)) {
    const auto file = python.path() / "site-packages/axe_playwright_python/axe.min.js";
    if (std::filesystem::exists(file)) return file;
  }
  return {};
}

void skip(const std::string& reason) {
  if (std::getenv("CI") != nullptr) FAIL_CHECK(reason << ": run tools/setup --dev");
  MESSAGE("skipped: " << reason);
}

}  // namespace

Browser* page_browser() {
  static const std::string program = tests::find_chromium();
  static const std::unique_ptr<Browser> one = program.empty() ? nullptr : std::make_unique<Browser>(program);
  if (one == nullptr) skip("no Chromium");
  return one.get();
}

void keep_picture(Browser& page, const std::string& name) {
  if (const char* folder = std::getenv("TRAINYARD_SCREENSHOTS"))
    std::ofstream(std::filesystem::path(folder) / (name + ".png"), std::ios::binary) << page.screenshot();
}

PictureSize keep_whole_picture(Browser& page, const std::string& name) {
  static const tests::ScratchFolder scratch;
  const char* wanted = std::getenv("TRAINYARD_SCREENSHOTS");
  const std::filesystem::path folder = wanted == nullptr ? scratch.path() : std::filesystem::path(wanted);
  const std::filesystem::path file = folder / (name + ".png");
  tests::write_text(file, page.whole_screenshot());
  const std::string png = tests::read_text(file);
  const auto number = [&](std::size_t at) {  // four bytes, the first is the highest
    unsigned value = 0;
    for (std::size_t i = 0; i < 4; ++i) value = value << 8U | static_cast<unsigned char>(png.at(at + i));
    return value;
  };
  return {number(16), number(20)};
}

bool add_page_checks(Browser& page) {
  page.evaluate(tests::read_text(project / "tests/reports/support/page_checks.js"));
  static const std::filesystem::path axe = axe_core();
  if (axe.empty()) {
    skip("no axe-core");
    return false;
  }
  static const std::string source = tests::read_text(axe) + "; true";
  page.evaluate(source);
  return true;
}

std::string wrong_in(Browser& page, const std::string& check) {
  std::string text;
  for (const auto& wrong : page.evaluate("check." + check + "()")) text += wrong.get<std::string>() + "\n";
  return text;
}

}  // namespace trainyard::reports
