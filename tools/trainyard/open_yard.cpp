#include "tools/trainyard/open_yard.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "db/queries.h"
#include "models/error.h"
#include "models/nearest_name.h"
#include "orchestrator/yard.h"

namespace trainyard::tools {

db::Database open_yard(const std::optional<std::filesystem::path>& yard) {
  const auto place = orchestrator::yard_from(yard);
  orchestrator::refuse_links(place);
  if (!place.exists())
    throw UserError("no results in " + place.root().string(),
                    "name the folder with --yard or TRAINYARD_HOME, or make one with `trainyard run FILE`");
  try {
    return db::Database::open_read_only(place.database());
  } catch (const db::OlderSchemaError&) {
    if (!orchestrator::may_write(place)) throw;
    const orchestrator::YardLock lock(place, "trainyard, which brings the database up to date");
    db::Database::open_for_writing(place.database());
  }
  return db::Database::open_read_only(place.database());
}

namespace {

constexpr auto between_looks = std::chrono::milliseconds(50);

bool has_an_experiment(const orchestrator::Yard& yard) {
  try {
    return yard.exists() && !db::experiment_names(db::Database::open_read_only(yard.database())).empty();
  } catch (const std::exception&) {  // its tables are just being made
    return false;
  }
}

}  // namespace

void wait_for_first_entry(const std::optional<std::filesystem::path>& yard,
                          const std::function<bool()>& stopped) {
  const auto place = orchestrator::yard_from(yard);
  while (!stopped() && !has_an_experiment(place) && orchestrator::in_use(place))
    std::this_thread::sleep_for(between_looks);
}

std::string experiment_named(const db::Database& database, const std::string& name) {
  const auto names = db::experiment_names(database);
  if (names.empty()) throw UserError("this yard has no experiment yet", "make one with `trainyard run FILE`");
  if (name.empty()) return names.back();
  if (std::find(names.begin(), names.end(), name) == names.end())
    throw UserError("no experiment \"" + name + "\" in this yard" + models::name_advice(name, names));
  return name;
}

std::string run_named(const db::Database& database, const std::string& text) {
  if (text.empty()) throw UserError("a run's key is empty", "`trainyard status` lists them");
  const auto keys = db::keys_with_prefix(database, text);
  if (keys.empty()) throw UserError("no run \"" + text + "\" in this yard", "`trainyard status` lists them");
  if (keys.size() > 1)
    throw UserError("\"" + text + "\" stands for " + std::to_string(keys.size()) + " runs: " + keys[0] +
                        ", " + keys[1] + (keys.size() > 2 ? ", …" : ""),
                    "give more digits");
  return keys.front();
}

}  // namespace trainyard::tools
