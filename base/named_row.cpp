#include "base/named_row.h"

#include <cctype>
#include <cstddef>

#include "base/text.h"

namespace trainyard {

namespace {

// Capital letters are the same as small ones.
bool same(char a, char b) {
  return std::tolower(static_cast<unsigned char>(a)) == std::tolower(static_cast<unsigned char>(b));
}

// Optimal string alignment distance. Edits: insert, delete, replace, and swap two neighbours. No substring is
// edited twice. Boytsov, "Indexing methods for approximate dictionary searching", 2011, section 2.2.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before_last, last, row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    before_last = std::move(last);
    last = row;
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = last[j - 1] + (same(a[i - 1], b[j - 1]) ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, replaced});
      const bool swapped = i > 1 && j > 1 && same(a[i - 1], b[j - 2]) && same(a[i - 2], b[j - 1]);
      if (swapped) row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
  }
  return row[b.size()];
}

}  // namespace

std::string nearest_name(std::string_view name, std::span<const std::string> known) {
  std::size_t limit = std::max<std::size_t>(1, name.size() / 3);
  std::string nearest;
  bool found = false;
  for (const std::string& candidate : known) {
    const std::size_t longer = std::max(name.size(), candidate.size());
    if (longer - std::min(name.size(), candidate.size()) > limit) continue;
    const std::size_t distance = edit_distance(name, candidate);
    if (distance > limit || (found && distance == limit)) continue;
    nearest = candidate;
    limit = distance;
    found = true;
  }
  return nearest;
}

std::string name_advice(std::string_view name, std::span<const std::string> known) {
  const std::string nearest = nearest_name(name, known);
  if (!nearest.empty()) return "; did you mean \"" + nearest + "\"?";
  if (known.empty()) return "";
  return "; choose from " + joined(known);
}

}  // namespace trainyard
