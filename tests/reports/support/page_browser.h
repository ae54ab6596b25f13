// The browser of the page tests, their pictures, and checks of properties that every page must have.
#pragma once

#include <string>

#include "tests/support/browser.h"

namespace trainyard::reports {

// One browser for all cases, because starting it takes longer than a case. Null without Chromium: the case is
// skipped, or fails if the environment has CI.
tests::Browser* page_browser();

// Saves a picture of the window in $TRAINYARD_SCREENSHOTS, if that is set.
void keep_picture(tests::Browser& page, const std::string& name);
// Saves a picture of the whole page there, or else in a scratch folder. Returns its size in pixels.
struct PictureSize {
  unsigned width = 0, height = 0;
};
PictureSize keep_whole_picture(tests::Browser& page, const std::string& name);

// Makes the functions of page_checks.js and axe-core available in the open page. False if axe-core is not
// installed: "axe" cannot be checked. It fails if the environment has CI.
bool add_page_checks(tests::Browser& page);

// What a function of page_checks.js finds wrong, one per line. Empty if nothing is wrong.
std::string wrong_in(tests::Browser& page, const std::string& check);

}  // namespace trainyard::reports
