// `report.json`: a report as text, complete, so that a page can be made from it without a yard. docs/comparing.md
// describes its members. The names here and there are the same.
#pragma once

#include <filesystem>
#include <string>

#include <nlohmann/json.hpp>

#include "reports/document/report.h"

namespace trainyard::reports {

inline constexpr int report_format = 1;

using OrderedJson = nlohmann::ordered_json;

// The same report gives the same text. Numbers have the shortest form that reads back as the same value.
std::string report_json(const Report& report);

// Parts of it, for `compare` and `export`.
OrderedJson json_of(const Comparison& comparison);
OrderedJson json_of(const std::vector<PublishedNumber>& numbers);

// The report in `text`. It may come from a stranger: a page made of it runs no code, and file names in it are
// checked. `name` is that of the file, for messages. UserError names the member that is wrong.
Report report_from_json(const std::string& text, const std::string& name);

inline constexpr std::size_t largest_report = std::size_t{64} << 20;  // bytes

// UserError if the file cannot be read, is larger than `largest_report`, or as above.
Report read_report(const std::filesystem::path& file);

}  // namespace trainyard::reports
