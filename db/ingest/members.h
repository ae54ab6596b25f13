// The members of a JSON object that somebody else wrote: known ones are taken out, with their types checked;
// what is left at the end are the unknown ones, which the database keeps as they are.
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>

#include <nlohmann/json.hpp>

namespace trainyard::db {

// A known member has the wrong type, or one that must be there is not.
class Unreadable : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class Members {
 public:
  explicit Members(nlohmann::json object);  // Unreadable where it is no object

  // Each removes the member. Empty where it is absent or null; Unreadable where its type is another.
  std::optional<std::int64_t> integer(const char* name);
  std::optional<double> number(const char* name);
  std::optional<std::string> text(const char* name);
  nlohmann::json any(const char* name);  // null where absent

  std::int64_t required_integer(const char* name);
  std::string required_text(const char* name);

  // Takes the member objects apart with `read(Members&)` and keeps what that leaves.
  template <typename Read>
  void inside(const char* name, Read&& read) {
    Members inner = object(name);
    std::forward<Read>(read)(inner);
    keep(name, inner);
  }

  void keep(const char* name, nlohmann::json rest);  // puts back what is left of a member
  void keep(const char* name, const Members& rest);
  nlohmann::json rest() const;  // null where nothing is left

 private:
  Members object(const char* name);  // an empty one where it is absent
  nlohmann::json object_;
};

}  // namespace trainyard::db
