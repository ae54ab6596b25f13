#include "reports/document/report_json.h"

#include <algorithm>
#include <cmath>
#include <concepts>
#include <limits>
#include <set>
#include <tuple>
#include <type_traits>

#include <fmt/format.h>

#include "base/error.h"
#include "base/plain_file.h"
#include "experiments/run/run.h"
#include "reports/document/metrics.h"
#include "reports/document/report_members.h"

namespace trainyard::reports {

namespace {

template <typename T>
concept HasMembers = !std::is_null_pointer_v<std::remove_const_t<decltype(members_of<T>)>>;
template <typename T>
concept HasNames = !std::is_null_pointer_v<std::remove_const_t<decltype(names_of<T>)>>;

template <typename T>
inline constexpr bool IsOptional = false;  // an optional member may be absent
template <typename T>
inline constexpr bool IsOptional<std::optional<T>> = true;
template <>
inline constexpr bool IsOptional<std::vector<experiments::OwnMetric>> = true;

constexpr const char* infinite = "infinite";
constexpr const char* minus_infinite = "-infinite";

// What the files of experiments already write and read.
template <typename T>
inline constexpr auto design_from_json = nullptr;
template <>
inline constexpr auto design_from_json<experiments::Compare> = experiments::compare_from_json;
template <>
inline constexpr auto design_from_json<experiments::Expectation> = experiments::expectation_from_json;
template <>
inline constexpr auto design_from_json<experiments::Published> = experiments::published_from_json;
template <>
inline constexpr auto design_from_json<experiments::ProfiledData> = experiments::profiled_data_from_json;
template <>
inline constexpr auto design_from_json<Value> = experiments::value_from_json;
template <typename T>
concept IsDesign = !std::is_null_pointer_v<std::remove_const_t<decltype(design_from_json<T>)>>;

// Types that are lists of their values in the file.
auto values_in(Interval& ends) {
  return std::tie(ends.low, ends.high);
}
auto values_in(Point& point) {
  return std::tie(point.x, point.mean, point.low, point.high, point.n);
}
auto values_in(std::pair<std::string, std::string>& texts) {
  return std::tie(texts.first, texts.second);
}
template <typename T>
concept IsList = requires(T& value) {
  values_in(value);
};

// Writing.

OrderedJson written(double number) {
  if (std::isinf(number)) return number > 0 ? infinite : minus_infinite;
  return std::isnan(number) ? OrderedJson(nullptr) : OrderedJson(number);
}

template <typename T>
requires std::integral<T> || std::same_as<T, std::string> OrderedJson written(const T& value) {
  return value;
}

OrderedJson written(IsList auto value) {
  return std::apply([](const auto&... all) { return OrderedJson::array({written(all)...}); },
                    values_in(value));
}

OrderedJson written(HasNames auto value) {
  return names_of<decltype(value)>.at(static_cast<std::size_t>(value));
}

OrderedJson written(const IsDesign auto& value) {
  return OrderedJson(experiments::to_json(value));
}

template <HasMembers T>
OrderedJson written(const T& value);

template <typename T>
OrderedJson written(const std::vector<T>& values);

template <typename T>
OrderedJson written(const std::optional<T>& value) {
  return value ? written(*value) : OrderedJson(nullptr);
}

template <typename T>
OrderedJson written(const std::map<std::string, T>& values) {
  OrderedJson object = OrderedJson::object();
  for (const auto& [name, value] : values) object[name] = written(value);
  return object;
}

template <typename T>
OrderedJson written(const std::vector<T>& values) {
  OrderedJson array = OrderedJson::array();
  for (const T& value : values) array.push_back(written(value));
  return array;
}

template <HasMembers T>
OrderedJson written(const T& value) {
  OrderedJson object = OrderedJson::object();
  const auto add = [&](const auto& member) { object[member.name] = written(value.*member.value); };
  std::apply([&](const auto&... all) { (add(all), ...); }, members_of<T>);
  return object;
}

// Reading. `place` names the value in messages: "comparisons[0].cells[2].label".

[[noreturn]] void refuse(const std::string& place, const std::string& expected) {
  throw UserError(place + ": expected " + expected, "write the file again with `trainyard report`");
}

void read(const OrderedJson& json, const std::string& place, double& number) {
  if (json.is_null()) {
    number = std::nan("");
  } else if (json.is_number()) {
    number = json.get<double>();
  } else if (json == infinite || json == minus_infinite) {
    number =
        json == infinite ? std::numeric_limits<double>::infinity() : -std::numeric_limits<double>::infinity();
  } else {
    refuse(place, "a number");
  }
}

void read(const OrderedJson& json, const std::string& place, std::string& text) {
  if (!json.is_string()) refuse(place, "a text");
  text = json.get<std::string>();
}

void read(const OrderedJson& json, const std::string& place, bool& value) {
  if (!json.is_boolean()) refuse(place, "true or false");
  value = json.get<bool>();
}

template <std::signed_integral T>
void read(const OrderedJson& json, const std::string& place, T& value) {
  if (!json.is_number_integer()) refuse(place, "an integer");
  const bool fits = json.is_number_unsigned() ? std::in_range<T>(json.get<std::uint64_t>())
                                              : std::in_range<T>(json.get<std::int64_t>());
  if (!fits) refuse(place, "a smaller integer");
  value = json.get<T>();
}

void read(const OrderedJson& json, const std::string& place, IsList auto& list) {
  const auto values = values_in(list);
  constexpr std::size_t length = std::tuple_size_v<decltype(values)>;
  if (!json.is_array() || json.size() != length) refuse(place, fmt::format("a list of {} values", length));
  std::size_t i = 0;
  std::apply([&](auto&... all) { (read(json[i++], place, all), ...); }, values);
}

template <HasNames T>
void read(const OrderedJson& json, const std::string& place, T& value) {
  std::string text;
  read(json, place, text);
  const auto& all = names_of<T>;
  const auto found = std::ranges::find(all, text);
  if (found == all.end()) refuse(place, fmt::format("another text than \"{}\"", text));
  value = static_cast<T>(found - all.begin());
}

template <IsDesign T>
void read(const OrderedJson& json, const std::string& place, T& value) try {
  value = design_from_json<T>(nlohmann::json(json));
} catch (const InternalError& error) {
  refuse(place, fmt::format("another value ({})", error.what()));
}

template <HasMembers T>
void read(const OrderedJson& json, const std::string& place, T& value);
template <typename T>
void read(const OrderedJson& json, const std::string& place, std::vector<T>& values);

template <typename T>
void read(const OrderedJson& json, const std::string& place, std::optional<T>& value) {
  if (!json.is_null()) read(json, place, value.emplace());
}

template <typename T>
void read(const OrderedJson& json, const std::string& place, std::map<std::string, T>& values) {
  if (!json.is_object()) refuse(place, "an object");
  for (const auto& [name, value] : json.items()) read(value, fmt::format("{}.{}", place, name), values[name]);
}

template <typename T>
void read(const OrderedJson& json, const std::string& place, std::vector<T>& values) {
  if (!json.is_array()) refuse(place, "a list");
  for (std::size_t i = 0; i < json.size(); ++i)
    read(json[i], fmt::format("{}[{}]", place, i), values.emplace_back());
}

template <HasMembers T>
void read(const OrderedJson& json, const std::string& place, T& value) {
  if (!json.is_object()) refuse(place, "an object");
  const auto take = [&](const auto& member) {
    const std::string at = place.empty() ? member.name : fmt::format("{}.{}", place, member.name);
    const auto found = json.find(member.name);
    if (found == json.end() && !IsOptional<std::remove_cvref_t<decltype(value.*member.value)>>)
      refuse(at, "a value");
    if (found != json.end()) read(*found, at, value.*member.value);
  };
  std::apply([&](const auto&... all) { (take(all), ...); }, members_of<T>);
}

// Copies of deeply nested JSON are recursive, and may overflow the stack.
bool refuse_deep(int depth, OrderedJson::parse_event_t, const OrderedJson&) {
  constexpr int deepest = 100;
  if (depth > deepest) refuse("the file", fmt::format("values nested at most {} deep", deepest));
  return true;
}

// What publishing relies on besides the types.

constexpr std::size_t longest_slug = 200;

void require_metric(const std::string& name) {
  if (known_metric(name) == nullptr) refuse("metric", "another name than \"" + name + "\"");
}

void require(const Arm& arm) {
  for (const Sample& sample : arm.samples) require_metric(sample.metric);
  for (const Curve& curve : arm.curves) require_metric(curve.metric);
  if (!arm.timeline) return;
  for (const TimelineEvent& event : arm.timeline->events)
    if (!(event.begin >= 0 && event.begin <= event.end && std::isfinite(event.end)))
      refuse("timeline", "events that end after they begin");
}

void require(const Cell& cell, std::set<std::string>& slugs) {
  if (slug_of(cell.slug) != cell.slug || cell.slug.size() > longest_slug)
    refuse("slug", "another text than \"" + cell.slug + "\"");
  if (!cell.repeated && !slugs.insert(cell.slug).second)
    refuse("slug", "a text that no other cell has, not \"" + cell.slug + "\"");
  require(cell.baseline);
  for (const std::vector<Arm>* arms : {&cell.arms, &cell.limits})
    for (const Arm& arm : *arms) require(arm);
  for (const Verdict& verdict : cell.verdicts) {
    require_metric(verdict.metric);
    if (cell.find_arm(verdict.arm) == nullptr)
      refuse("verdicts", "another arm than \"" + verdict.arm + "\", which the cell does not have");
  }
}

void require(const Report& report) {
  if (report.comparisons.empty()) refuse("comparisons", "at least one");
  std::set<std::string> slugs;
  for (const Comparison& comparison : report.comparisons) {
    const std::string& end = comparison.slug_end;
    if (!end.empty() && (end != "-" + slug_of(end) || end.size() > longest_slug))
      refuse("slug_end", "another text than \"" + end + "\"");
    for (const Cell& cell : comparison.cells) require(cell, slugs);
  }
  for (const ParameterStudy& study : report.studies) {
    if (study.values.size() < 2) refuse("studies", "at least two values of an axis");
    for (const StudiedMetric& studied : study.metrics) require_metric(studied.metric);
  }
  for (const experiments::ProfiledData& data : report.data_profiles)
    for (const std::vector<std::int64_t>& counts : data.profile.classes)
      if (counts.size() != data.profile.classes.front().size())
        refuse("data_profiles", "as many classes in each part of the data");
}

}  // namespace

OrderedJson json_of(const Comparison& comparison) {
  return written(comparison);
}

OrderedJson json_of(const std::vector<PublishedNumber>& numbers) {
  return written(numbers);
}

std::string report_json(const Report& report) {
  OrderedJson json{{"format", report_format}};
  json.update(written(report));
  return json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

Report report_from_json(const std::string& text, const std::string& name) {
  try {
    const OrderedJson json = OrderedJson::parse(text, refuse_deep);
    int format = 0;
    if (!json.is_object() || !json.contains("format")) refuse("format", fmt::format("{}", report_format));
    read(json["format"], "format", format);
    if (format != report_format) refuse("format", fmt::format("{}, not {}", report_format, format));
    Report report;
    read(json, "", report);
    for (const experiments::OwnMetric& metric : report.own_metrics)
      if (!experiments::problem_of_metric_name(metric.name).empty() || !add_own_metric(metric))
        refuse("own_metrics", "each name once, and none of trainyard");
    require(report);
    return report;
  } catch (const nlohmann::json::exception&) {
    throw UserError(name + " is not JSON", "name a file report.json that `trainyard report` wrote");
  } catch (const UserError& error) {
    throw UserError(name + ": " + error.what());
  }
}

Report read_report(const std::filesystem::path& file) {
  const PlainContent content = plain_content(file, largest_report);
  if (!content.problem.empty())
    throw UserError(file.string() + " cannot be read: " + content.problem,
                    "name a file report.json that `trainyard report` wrote");
  return report_from_json(content.text, file.string());
}

}  // namespace trainyard::reports
