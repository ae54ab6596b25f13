#include "reports/format/figure_size.h"

#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "reports/format/number_text.h"

namespace trainyard::reports {

namespace {

constexpr std::array<std::pair<const char*, double>, 4> units_in_inch{
    {{"cm", 2.54}, {"mm", 25.4}, {"in", 1}, {"pt", latex_points_per_inch}}};
constexpr double most_inches = 40;  // about one metre
constexpr double least_font_points = 4;
constexpr double most_font_points = 40;

// Rounded up to a millimetre.
std::string centimetres(double pixels) {
  return plain_number(std::ceil(pixels / units_per_inch * 25.4 - 1e-9) / 10, 4) + "cm";
}

}  // namespace

double pixels_of_length(const std::string& option, const std::string& length) {
  double number = 0;
  const char* const end = length.data() + length.size();
  const auto [unit, error] = std::from_chars(length.data(), end, number, std::chars_format::fixed);
  if (error == std::errc())
    for (const auto& [name, per_inch] : units_in_inch) {
      if (std::string(unit, end) != name) continue;
      const double inches = number / per_inch;
      if (inches > 0 && inches <= most_inches) return inches * units_per_inch;
      throw UserError(fmt::format("{} {} is not between 0 and {}", option, length,
                                  centimetres(most_inches * units_per_inch)),
                      "give the size that the figure has on paper, as in 7cm");
    }
  throw UserError(fmt::format("{} \"{}\" is not a length", option, length),
                  "give a number and a unit without a space: 7cm, 70mm, 2.75in or 200pt");
}

FigureSize figure_size(const std::string& width, const std::string& height, std::optional<double> font_points,
                       bool title) {
  FigureSize size;
  size.title = title;
  if (width.empty() && (!height.empty() || font_points))
    throw UserError("--height and --font-size need --width",
                    "add the width of the figures, as in --width 7cm");
  if (width.empty()) return size;
  const double points = font_points.value_or(usual_font_points);
  if (!(points >= least_font_points && points <= most_font_points))
    throw UserError(fmt::format("--font-size {} is not between {} and {} points", plain_number(points),
                                least_font_points, most_font_points),
                    "give the font size of your captions, as in --font-size 9");
  size.font = points / latex_points_per_inch * units_per_inch;
  size.width = pixels_of_length("--width", width);
  if (!height.empty()) size.height = pixels_of_length("--height", height);
  const double least = least_width_in_fonts * size.font;
  if (size.width < least)
    throw UserError(fmt::format("--width {} is too small for text of {} pt", width, plain_number(points)),
                    fmt::format("give at least {}, or a smaller --font-size", centimetres(least)));
  return size;
}

}  // namespace trainyard::reports
