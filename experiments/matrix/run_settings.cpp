#include "experiments/matrix/run_settings.h"

#include "experiments/config/vocabulary.h"

namespace trainyard::experiments {

namespace {

const Setting* setting(const Settings& settings, const std::string& name) {
  const auto found = settings.find(name);
  return found == settings.end() ? nullptr : &found->second;
}

const Setting* setting(const std::map<std::string, Settings>& tables, const std::string& table,
                       const std::string& name) {
  const auto found = tables.find(table);
  return found == tables.end() ? nullptr : setting(found->second, name);
}

std::string strategy_of(const Point& point) {
  const Setting* named = setting(point.values, "strategy");
  return named ? std::get<std::string>(named->value) : "single";
}

}  // namespace

RunSettings::RunSettings(const Sheet& sheet, const Point& point)
    : sheet_(sheet),
      point_(point),
      model_(model_or_null(std::get<std::string>(point.values.at("model").value), sheet.declared)),
      strategy_(strategy_of(point)),
      kind_(strategy_kind(sheet, strategy_)) {}

// `--set replicas=4` means the strategies that have replicas.
bool RunSettings::has_use_for(const std::string& strategy_key) const {
  if (strategy_key == "replicas") return kind_->replicas.any();
  if (strategy_key == "stages" || strategy_key == "stage_split") return kind_->stages.any();
  return kind_->micro_batches.any();
}

const Setting* RunSettings::find_in_tables(const std::string& name) const {
  if (const Setting* found = setting(sheet_.strategies, strategy_, name)) return found;
  return setting(sheet_.models, model_->name, name);
}

const Setting* RunSettings::find(const std::string& name) const {
  if (const Setting* found = setting(point_.values, name)) return found;
  if (const Setting* found = setting(sheet_.overrides, name))
    if (!is_strategy_key(name) || has_use_for(name)) return found;
  if (const Setting* found = find_in_tables(name)) return found;
  return setting(sheet_.defaults, name);
}

const Setting* RunSettings::find_own(const std::string& name) const {
  const Setting* found = find(name);
  if (found == setting(sheet_.defaults, name) || found == setting(sheet_.overrides, name)) return nullptr;
  return found;
}

Location RunSettings::place(const std::string& name) const {
  const Setting* found = find(name);
  return found ? found->at : point_.at;
}

models::Value RunSettings::value(const std::string& name) const {
  const Setting* found = find(name);
  return found ? found->value : run_parameter(name)->fallback.value();
}

std::optional<std::int64_t> RunSettings::optional_integer(const std::string& name) const {
  const Setting* found = find(name);
  if (found == nullptr) return std::nullopt;
  return std::get<std::int64_t>(found->value);
}

}  // namespace trainyard::experiments
