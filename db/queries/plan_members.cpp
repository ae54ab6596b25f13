#include "db/queries/plan_members.h"

#include <array>
#include <string>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json_members.h"

namespace trainyard::db {

using nlohmann::json;

namespace {

// A number or a text would be taken for a list of itself.
const json::array_t& list(const json& value) {
  return value.get_ref<const json::array_t&>();
}

// What `resume` asks again.
json asked_from_json(const json& value) {
  const auto& object = value.get_ref<const json::object_t&>();
  for (const char* text : {"folder", "data"})
    if (object.contains(text)) object.at(text).get_ref<const std::string&>();
  for (const char* texts : {"set", "where", "exclude_where"})
    if (object.contains(texts)) experiments::read_as<std::vector<std::string>>(object.at(texts));
  return value;
}

struct PlanMember {
  std::string_view name;
  void (*read)(const json& from, Plan& to);
};

constexpr std::array<PlanMember, 6> plan_members{{
    {"compare", [](const json& from, Plan& to) { to.compare = comparisons_from_json(from); }},
    {"varied", [](const json& from, Plan& to) { experiments::read(from, to.varied); }},
    {"expect",
     [](const json& from, Plan& to) {
       for (const json& one : list(from)) to.expect.push_back(experiments::expectation_from_json(one));
     }},
    {"published", [](const json& from, Plan& to) { to.published = experiments::published_from_json(from); }},
    {"data_profiles",
     [](const json& from, Plan& to) {
       for (const json& one : list(from))
         to.data_profiles.push_back(experiments::profiled_data_from_json(one));
     }},
    {"asked", [](const json& from, Plan& to) { to.asked = asked_from_json(from); }},
}};

}  // namespace

std::vector<experiments::Compare> comparisons_from_json(const json& value) {
  std::vector<experiments::Compare> comparisons;
  for (const json& one : list(value)) comparisons.push_back(experiments::compare_from_json(one));
  return comparisons;
}

void read_plan_member(Plan& plan, std::string_view name, const json& value) try {
  if (value.is_null()) return;
  for (const PlanMember& member : plan_members)
    if (member.name == name) member.read(value, plan);
} catch (const json::exception& error) {
  throw InternalError("member " + std::string(name) + " of a journal entry: " + error.what());
}

void require_readable_plan(const json& entry) {
  Plan ignored;
  for (const PlanMember& member : plan_members)
    if (const auto found = entry.find(member.name); found != entry.end())
      read_plan_member(ignored, member.name, *found);
}

}  // namespace trainyard::db
