// Replaces image.cpp in builds without librsvg and cairo (TRAINYARD_PICTURES).
#include "base/error.h"
#include "reports/draw/image.h"

namespace trainyard::reports {

namespace {

[[noreturn]] void refuse(const char* format) {
  throw UserError(std::string("this build of trainyard cannot write ") + format,
                  "use --format svg, or build with -DTRAINYARD_PICTURES=ON");
}

}  // namespace

bool can_write_pictures() {
  return false;
}

std::string png_of(const std::string&, double) {
  refuse("PNG");
}

std::string pdf_of(const std::string&, const std::string&, const std::string&) {
  refuse("PDF");
}

}  // namespace trainyard::reports
