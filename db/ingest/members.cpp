#include "db/ingest/members.h"

#include "base/json_members.h"

namespace trainyard::db {

using nlohmann::json;

namespace {

[[noreturn]] void wrong(const char* name, const char* wanted) {
  throw Unreadable(std::string("member ") + name + " must be " + wanted);
}

}  // namespace

Members::Members(json object) : object_(std::move(object)) {
  if (!object_.is_object()) throw Unreadable("not a JSON object");
}

json Members::any(const char* name) {
  const auto member = object_.find(name);
  if (member == object_.end()) return nullptr;
  json value = std::move(*member);
  object_.erase(member);
  return value;
}

std::optional<std::int64_t> Members::integer(const char* name) {
  const json value = any(name);
  if (value.is_null()) return std::nullopt;
  if (!experiments::fits<std::int64_t>(value)) wrong(name, "an integer");
  return value.get<std::int64_t>();
}

std::optional<double> Members::number(const char* name) {
  const json value = any(name);
  if (value.is_null()) return std::nullopt;
  if (!value.is_number()) wrong(name, "a number");
  return value.get<double>();
}

std::optional<std::string> Members::text(const char* name) {
  const json value = any(name);
  if (value.is_null()) return std::nullopt;
  if (!value.is_string()) wrong(name, "a text");
  return value.get<std::string>();
}

std::int64_t Members::required_integer(const char* name) {
  const auto value = integer(name);
  if (!value) wrong(name, "an integer");
  return *value;
}

std::string Members::required_text(const char* name) {
  auto value = text(name);
  if (!value) wrong(name, "a text");
  return *std::move(value);
}

Members Members::object(const char* name) {
  json value = any(name);
  if (value.is_null()) return Members(json::object());
  if (!value.is_object()) wrong(name, "an object");
  return Members(std::move(value));
}

json Members::list(const char* name) {
  json value = any(name);
  if (value.is_null()) return json::array();
  if (!value.is_array()) wrong(name, "a list");
  return value;
}

void Members::keep(const char* name, json rest) {
  if (!rest.is_null()) object_[name] = std::move(rest);
}

json Members::rest() const {
  return object_.empty() ? json(nullptr) : object_;
}

}  // namespace trainyard::db
