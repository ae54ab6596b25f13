#include "reports/draw/text_width.h"

#include <array>
#include <cstdint>

namespace trainyard::reports {

namespace {

constexpr double units_per_em = 2048;
constexpr double usual_advance = 1300;  // of what the tables do not have

// DejaVu Sans Book 2.37, advance widths of U+0020 … U+007E.
constexpr std::array<std::uint16_t, 95> ascii_advance{
    651,  821,  942,  1716, 1303, 1946, 1597, 563,  799,  799,  1024, 1716, 651,  739,  651,  690,
    1303, 1303, 1303, 1303, 1303, 1303, 1303, 1303, 1303, 1303, 690,  690,  1716, 1716, 1716, 1087,
    2048, 1401, 1405, 1430, 1577, 1294, 1178, 1587, 1540, 604,  604,  1343, 1141, 1767, 1532, 1612,
    1235, 1612, 1423, 1300, 1251, 1499, 1401, 2025, 1403, 1251, 1403, 799,  690,  799,  1716, 1024,
    1024, 1255, 1300, 1126, 1300, 1260, 721,  1300, 1298, 569,  569,  1186, 569,  1995, 1298, 1253,
    1300, 1300, 842,  1067, 803,  1298, 1212, 1675, 1212, 1212, 1075, 1303, 690,  1303, 1716,
};

struct Advance {
  std::uint32_t character;
  double width;
};
// minus, multiplication sign, en dash, ellipsis, micro, plus-minus, middle dot
constexpr std::array<Advance, 7> other_advance{
    {{0x2212, 1716}, {0xd7, 1716}, {0x2013, 1024}, {0x2026, 2048}, {0xb5, 1303}, {0xb1, 1716}, {0xb7, 651}}};

double advance(std::uint32_t character) {
  if (character >= 0x20 && character <= 0x7e) return ascii_advance[character - 0x20];
  for (const Advance& other : other_advance) {
    if (other.character == character) return other.width;
  }
  return usual_advance;
}

}  // namespace

double text_width(std::string_view text, double size) {
  double width = 0;
  std::uint32_t character = 0;
  int pending = 0;  // continuation bytes of a UTF-8 sequence still to come
  for (const char raw : text) {
    const auto byte = static_cast<unsigned char>(raw);
    if ((byte & 0xc0U) == 0x80U) {
      character = (character << 6U) | (byte & 0x3fU);
      if (--pending == 0) width += advance(character);
      continue;
    }
    pending = byte >= 0xf0 ? 3 : byte >= 0xe0 ? 2 : byte >= 0xc0 ? 1 : 0;
    character = pending == 3   ? byte & 0x07U
                : pending == 2 ? byte & 0x0fU
                : pending == 1 ? byte & 0x1fU
                               : byte;
    if (pending == 0) width += advance(character);
  }
  return width / units_per_em * size;
}

}  // namespace trainyard::reports
