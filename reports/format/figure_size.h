// The physical size of figures in files, as `trainyard report --width 7cm --font-size 9` gives it.
#pragma once

#include <optional>
#include <string>

namespace trainyard::reports {

inline constexpr double units_per_inch = 96;  // of drawings: CSS pixels
inline constexpr double latex_points_per_inch = 72.27;
inline constexpr double usual_font_points = 9;      // of figures with a width
inline constexpr double least_width_in_fonts = 18;  // the font size times this is the least width

// Lengths are in CSS pixels. 0: as on the page.
struct FigureSize {
  double width = 0;
  double height =
      0;            // 0 with a width: as the content needs. Figures of rows always take the height they need
  double font = 0;  // of all text
  bool title = true;  // title and caption are in the picture
  bool sized() const { return width > 0; }
};

// A length with its option: {"--width", "7cm"}. Units: cm, mm, in, and pt as LaTeX has it, 72.27 per inch.
// UserError if it is not such a length.
double pixels_of_length(const std::string& option, const std::string& length);

// UserError if a value is outside its range, or if the width is too small for the font size.
FigureSize figure_size(const std::string& width, const std::string& height, std::optional<double> font_points,
                       bool title);

}  // namespace trainyard::reports
