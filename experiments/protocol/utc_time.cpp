#include "experiments/protocol/utc_time.h"

#include <array>
#include <charconv>
#include <cstdio>

namespace trainyard::experiments {

std::string utc_text(std::chrono::sys_time<std::chrono::milliseconds> time) {
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(time - day);
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%04d-%02u-%02uT%02d:%02d:%02d.%03dZ",
                static_cast<int>(date.year()), static_cast<unsigned>(date.month()),
                static_cast<unsigned>(date.day()), static_cast<int>(clock.hours().count()),
                static_cast<int>(clock.minutes().count()), static_cast<int>(clock.seconds().count()),
                static_cast<int>(clock.subseconds().count()));
  return text.data();
}

namespace {

// Takes a text from its front, piece by piece; what does not fit leaves it failed.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : rest_(text) {}

  bool at(std::string_view any_of) const { return !rest_.empty() && any_of.find(rest_.front()) != text_end; }
  char take(std::string_view any_of) {
    if (!at(any_of)) return fail();
    const char taken = rest_.front();
    rest_.remove_prefix(1);
    return taken;
  }
  int number(int digits, int maximum) {
    int value = 0;
    for (int i = 0; i < digits; ++i) value = value * 10 + (take("0123456789") - '0');
    if (value > maximum) fail();
    return failed_ ? 0 : value;
  }
  // ".345", of any length, as milliseconds; 0 where there is none.
  std::chrono::milliseconds fraction() {
    int milliseconds = 0, unit = 100;
    if (!at(".")) return {};
    take(".");
    do {
      milliseconds += unit * number(1, 9);
      unit /= 10;
    } while (at("0123456789"));
    return std::chrono::milliseconds(milliseconds);
  }
  bool done() const { return !failed_ && rest_.empty(); }

 private:
  static constexpr auto text_end = std::string_view::npos;
  char fail() {
    failed_ = true;
    return '0';
  }
  std::string_view rest_;
  bool failed_ = false;
};

std::chrono::minutes clock_minutes(Scanner& scanner) {
  const int hours = scanner.number(2, 23);
  scanner.take(":");
  return std::chrono::minutes(60 * hours + scanner.number(2, 59));
}

// "Z", "+02:00", or nothing.
std::chrono::minutes offset(Scanner& scanner) {
  if (scanner.at("Zz")) return scanner.take("Zz"), std::chrono::minutes(0);
  if (!scanner.at("+-")) return std::chrono::minutes(0);
  const bool behind = scanner.take("+-") == '-';
  const auto minutes = clock_minutes(scanner);
  return behind ? -minutes : minutes;
}

}  // namespace

// RFC 3339, section 5.6; its note allows a space for the "T".
std::optional<std::string> utc_time(std::string_view text) {
  Scanner scanner(text);
  const std::chrono::year year(scanner.number(4, 9999));
  scanner.take("-");
  const std::chrono::month month(static_cast<unsigned>(scanner.number(2, 12)));
  scanner.take("-");
  const std::chrono::day day(static_cast<unsigned>(scanner.number(2, 31)));
  scanner.take("Tt ");
  const auto minutes = clock_minutes(scanner);
  scanner.take(":");
  const std::chrono::seconds seconds(scanner.number(2, 60));  // 60: a leap second
  const auto fraction = scanner.fraction();
  const auto ahead = offset(scanner);
  const std::chrono::year_month_day date(year, month, day);
  if (!scanner.done() || !date.ok()) return std::nullopt;
  return utc_text(std::chrono::sys_days(date) + minutes + seconds + fraction - ahead);
}

}  // namespace trainyard::experiments
