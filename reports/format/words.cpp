#include "reports/format/words.h"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>

#include "base/text.h"
#include "reports/format/number_text.h"

namespace trainyard::reports {

std::string upper_first(std::string text) {
  if (!text.empty()) text.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(text.front())));
  return text;
}

std::string lower_first(std::string text) {
  if (!text.empty()) text.front() = static_cast<char>(std::tolower(static_cast<unsigned char>(text.front())));
  return text;
}

std::string with_spaces(std::string name) {
  std::ranges::replace(name, '_', ' ');
  return name;
}

std::string load_text(double least, double most) {
  const auto percent = [](double share) { return plain_number(100 * share, share < 0.1 ? 1 : 2); };
  const std::string low = percent(least), high = percent(most);
  return fmt::format("other processes took {}{} % of their cores", low == high ? "" : low + " – ", high);
}

std::string some_of(const std::vector<std::string>& names, std::size_t most) {
  std::string text;
  const std::size_t shown = names.size() <= most ? names.size() : most - 1;
  for (std::size_t i = 0; i < shown; ++i) {
    const bool last = i + 1 == names.size();
    text += (i == 0 ? "" : last ? " and " : ", ") + names[i];
  }
  if (shown < names.size()) text += fmt::format(" and {} others", names.size() - shown);
  return text;
}

std::string all_of(const std::vector<std::string>& names) {
  return some_of(names, names.size());
}

std::string first_and_others(const std::vector<std::string>& arms) {
  return arms.front() + (arms.size() == 1 ? "" : " and " + counted(arms.size() - 1, "other arm"));
}

}  // namespace trainyard::reports
