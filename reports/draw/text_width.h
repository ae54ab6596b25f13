// Width of a text in DejaVu Sans, from a small shipped table of its advance widths: figures come out the same
// on a machine that has no fonts at all.
#pragma once

#include <string_view>

namespace trainyard::reports {

// Of UTF-8 `text` at `size`, in the unit of `size`.
double text_width(std::string_view text, double size);

}  // namespace trainyard::reports
