// The format of times in records.
#include <regex>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "experiments/protocol/record.h"

using namespace trainyard::experiments;

// The first five are the examples of RFC 3339, section 5.8, with the instants given there. The others are one
// instant as written by Python's datetime and Unix's `date`.
TEST_CASE("times of RFC 3339 become UTC with milliseconds, and sort as text") {
  const std::vector<std::pair<std::string, std::string>> times{
      {"1985-04-12T23:20:50.52Z", "1985-04-12T23:20:50.520Z"},
      {"1996-12-19T16:39:57-08:00", "1996-12-20T00:39:57.000Z"},
      {"1990-12-31T23:59:60Z", "1991-01-01T00:00:00.000Z"},
      {"1990-12-31T15:59:60-08:00", "1991-01-01T00:00:00.000Z"},
      {"1937-01-01T12:00:27.87+00:20", "1937-01-01T11:40:27.870Z"},
      {"2026-11-20T09:30:12.345678+00:00", "2026-11-20T09:30:12.345Z"},
      {"2026-11-20 09:30:12.345678", "2026-11-20T09:30:12.345Z"},
      {"2026-11-20 11:30:12.345999+02:00", "2026-11-20T09:30:12.345Z"},
      {"2026-11-20t09:30:12.345z", "2026-11-20T09:30:12.345Z"},
      {"2024-02-29T23:59:59-00:01", "2024-03-01T00:00:59.000Z"}};
  for (const auto& [text, utc] : times) CHECK(utc_time(text) == utc);
}

TEST_CASE("an invalid time is refused, whichever part is wrong") {
  for (const char* text : {"",
                           "now",
                           "t",
                           "1763631012",
                           "2026-11-20",
                           "09:30:12Z",
                           "2026-11-20T09:30Z",
                           "2026-13-20T09:30:12Z",
                           "2026-11-31T09:30:12Z",
                           "2025-02-29T09:30:12Z",
                           "2026-00-20T09:30:12Z",
                           "2026-11-20T24:00:00Z",
                           "2026-11-20T09:60:12Z",
                           "2026-11-20T09:30:61Z",
                           "2026-11-20T09:30:12.Z",
                           "2026-11-20T09:30:12,345Z",
                           "2026-11-20T09:30:12+0200",
                           "2026-11-20T09:30:12+24:00",
                           "2026-11-20T09:30:12Z+02:00",
                           "2026-11-20T09:30:12 UTC",
                           " 2026-11-20T09:30:12Z",
                           "2026-11-20T09:30:12Z ",
                           "+026-11-20T09:30:12Z"})
    CHECK_MESSAGE(!utc_time(text), text);
}

TEST_CASE("the current time is UTC with milliseconds") {
  CHECK(std::regex_match(utc_now(), std::regex(R"(20\d\d-[01]\d-[0-3]\dT[0-2]\d:[0-5]\d:[0-6]\d\.\d{3}Z)")));
}
