// The members of a JSON object from another program. Known members are taken out and their types are checked.
// The rest are unknown members, which the database keeps unchanged.
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>

#include <nlohmann/json.hpp>

namespace trainyard::db {

// A known member has the wrong type, or a required member is missing.
class Unreadable : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class Members {
 public:
  explicit Members(nlohmann::json object);  // Unreadable if it is not an object

  // Take a member out. Empty if it is absent or null. Unreadable if it has another type.
  std::optional<std::int64_t> integer(const char* name);
  std::optional<double> number(const char* name);
  std::optional<std::string> text(const char* name);
  nlohmann::json any(const char* name);  // null if absent

  std::int64_t required_integer(const char* name);
  std::string required_text(const char* name);

  // Read the members of a member object with `read(Members&)`, and keep the rest of it.
  template <typename Read>
  void inside(const char* name, Read&& read) {
    Members inner = object(name);
    std::forward<Read>(read)(inner);
    keep(name, inner.rest());
  }

  // The same for each object in a member list.
  template <typename Read>
  void each(const char* name, Read&& read) {
    nlohmann::json left = nullptr;
    for (std::size_t place = 0; const nlohmann::json& element : list(name)) {
      Members inner(element);
      read(inner);
      if (const nlohmann::json rest = inner.rest(); !rest.is_null()) left[std::to_string(place)] = rest;
      ++place;
    }
    keep(name, left);
  }

  nlohmann::json rest() const;  // null if nothing is left

 private:
  Members object(const char* name);                  // empty if it is absent
  nlohmann::json list(const char* name);             // empty if it is absent
  void keep(const char* name, nlohmann::json rest);  // put back the rest of a member
  nlohmann::json object_;
};

}  // namespace trainyard::db
