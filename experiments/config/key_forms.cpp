#include "experiments/config/key_forms.h"

#include <algorithm>
#include <charconv>
#include <functional>
#include <string_view>

#include "experiments/config/vocabulary.h"
#include "experiments/run/run.h"

namespace trainyard::experiments {

using models::Parameter;
using models::Value;

namespace {

constexpr std::string_view per_replica = " per replica";

const Key& key_named(const std::string& name) {
  const auto rows = keys();
  return *std::find_if(rows.begin(), rows.end(), [&](const Key& key) { return key.parameter.name == name; });
}

void report_other(const Parameter& parameter, const Item& item, Problems& problems) {
  problems.error(item.at, parameter.name + " must be " + allowed_text(key_named(parameter.name)) + ", is " +
                              description(item));
}

// The number before " per replica"; nothing where the text is another.
std::optional<std::int64_t> replica_size(std::string_view text) {
  if (!text.ends_with(per_replica)) return std::nullopt;
  text.remove_suffix(per_replica.size());
  std::int64_t size = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), size);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return size;
}

const Parameter& per_parameter() {
  static const Parameter parameter = [] {
    Parameter per;
    per.name = "per";
    per.type = models::ValueType::text;
    per.choices = {"global", "replica"};
    return per;
  }();
  return parameter;
}

std::optional<Value> batch_table(const Parameter& parameter, const Item& item, Problems& problems) {
  const std::size_t errors = problems.errors();
  std::optional<Value> size;
  Value per = std::string("global");
  bool sized = false;
  for (const Member& member : *item.table()) {
    if (member.name == "size") {
      size = checked_value(parameter, member.value, problems);
      sized = true;
    } else if (member.name == "per") {
      per = checked_value(per_parameter(), member.value, problems).value_or(per);
    } else {
      report_unknown(member, "batch", {"size", "per"}, problems);
    }
  }
  if (!sized) problems.error(item.at, "batch has no size, as in { size = 128, per = \"global\" }");
  if (problems.errors() > errors || !size) return std::nullopt;
  return batch_value(std::get<std::int64_t>(*size), std::get<std::string>(per));
}

}  // namespace

Batch batch_of(const Value& value) {
  if (const auto* size = std::get_if<std::int64_t>(&value)) return {.size = *size, .per = "global"};
  return {.size = replica_size(std::get<std::string>(value)).value(), .per = "replica"};
}

std::optional<Value> checked_batch(const Parameter& parameter, const Item& item, Problems& problems) {
  if (item.table() != nullptr) return batch_table(parameter, item, problems);
  auto raw = as_value(item);
  if (raw && !models::problem_with(parameter, *raw)) return raw;
  if (const auto size = item.text() ? replica_size(*item.text()) : std::nullopt)
    if (!models::problem_with(parameter, *size)) return batch_value(*size, "replica");
  report_other(parameter, item, problems);
  return std::nullopt;
}

std::optional<Value> checked_stage_split(const Parameter& parameter, const Item& item, Problems& problems) {
  if (item.text() != nullptr && *item.text() == "auto") return Value(*item.text());
  auto raw = as_value(item);
  if (!raw || models::problem_with(parameter, *raw)) {
    report_other(parameter, item, problems);
    return std::nullopt;
  }
  const auto& boundaries = std::get<std::vector<std::int64_t>>(*raw);
  if (std::is_sorted(boundaries.begin(), boundaries.end(), std::less_equal<>())) return raw;
  problems.error(item.at, "the boundaries of stage_split must ascend, are " + models::to_text(*raw));
  return std::nullopt;
}

}  // namespace trainyard::experiments
