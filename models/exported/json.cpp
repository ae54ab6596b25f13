#include "models/exported/json.h"

#include <limits>
#include <set>

#include <fmt/format.h>

#include "base/text.h"

namespace trainyard::models::pt2 {

std::string in_quotes(std::string_view text) {
  constexpr std::size_t longest = 80;
  return "'" + shortened(printable_line(text.substr(0, 4 * longest)), longest) + "'";
}

namespace {

// Checks a text in one pass, before its values are made. The callback of Json::parse could check the same, but
// takes quadratic time for a list of objects.
class Check final : public nlohmann::json_sax<Json> {
 public:
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_object(std::size_t) override { return open(); }
  bool end_object() override { return close(); }
  bool start_array(std::size_t) override { return open(); }
  bool end_array() override { return close(); }
  bool key(string_t& name) override {
    if (names_.back().insert(name).second) return true;
    throw Fault(in_quotes(name) + " is there twice in one object");
  }
  bool parse_error(std::size_t byte, const std::string&, const Json::exception& error) override {
    if (dynamic_cast<const Json::out_of_range*>(&error) != nullptr)
      throw Fault("a number is too large for JSON");
    throw Fault(fmt::format("byte {}: this is not JSON", byte));
  }

 private:
  bool open() {
    if (names_.size() >= most_depth)
      throw Fault(fmt::format("its JSON is deeper than {} levels, which is the limit", most_depth));
    names_.emplace_back();
    return true;
  }
  bool close() {
    names_.pop_back();
    return true;
  }

  std::vector<std::set<std::string>> names_;  // of the open objects; a list has none
};

[[noreturn]] void refuse_type(const Json& json, const char* wanted) {
  throw Fault(fmt::format("expected {}, but found {} of type {}", wanted,
                          json.is_structured() ? "a value" : in_quotes(json.dump(-1, ' ', true)),
                          json.type_name()));
}

}  // namespace

Json parsed(std::string_view text, std::size_t most_bytes) {
  if (text.size() > most_bytes)
    throw Fault(fmt::format("it has {} bytes, but at most {} are allowed", text.size(), most_bytes));
  Check check;
  Json::sax_parse(text, &check);
  return Json::parse(text);
}

const Json* member_or_null(const Json& json, const std::string& name) {
  if (!json.is_object()) refuse_type(json, "an object");
  const auto found = json.find(name);
  return found == json.end() || found->is_null() ? nullptr : &*found;
}

const Json& member(const Json& json, const std::string& name) {
  const Json* found = member_or_null(json, name);
  if (found == nullptr) throw Fault(fmt::format("the member '{}' is missing", name));
  return *found;
}

const std::string& text_in(const Json& json) {
  if (!json.is_string()) refuse_type(json, "a text");
  return json.get_ref<const std::string&>();
}

std::int64_t integer_in(const Json& json) {
  const bool fits = json.is_number_integer() &&
                    (!json.is_number_unsigned() ||
                     json.get<std::uint64_t>() <= std::uint64_t{std::numeric_limits<std::int64_t>::max()});
  if (!fits) refuse_type(json, "an integer of 64 bits");
  return json.get<std::int64_t>();
}

double number_in(const Json& json) {
  if (json.is_number()) return json.get<double>();
  if (json == "Infinity") return std::numeric_limits<double>::infinity();
  if (json == "-Infinity") return -std::numeric_limits<double>::infinity();
  if (json == "NaN") return std::numeric_limits<double>::quiet_NaN();
  refuse_type(json, "a number");
}

bool flag_in(const Json& json) {
  if (!json.is_boolean()) refuse_type(json, "true or false");
  return json.get<bool>();
}

const std::vector<Json>& list_in(const Json& json, std::size_t most) {
  if (!json.is_array()) refuse_type(json, "a list");
  if (json.size() > most)
    throw Fault(fmt::format("a list has {} items, but at most {} are allowed", json.size(), most));
  return json.get_ref<const std::vector<Json>&>();
}

const Json::object_t& object_in(const Json& json) {
  if (!json.is_object()) refuse_type(json, "an object");
  return json.get_ref<const Json::object_t&>();
}

const std::string& name_in(const Json& json) {
  constexpr std::size_t longest = 1000;
  const std::string& name = text_in(json);
  if (name.empty() || name.size() > longest)
    throw Fault(fmt::format("a name has {} bytes, but 1 to {} are allowed", name.size(), longest));
  if (printable_line(name) != name) throw Fault("the name " + in_quotes(name) + " has control characters");
  return name;
}

std::pair<const std::string&, const Json&> choice_in(const Json& json) {
  if (!json.is_object() || json.size() != 1) refuse_type(json, "an object with one member");
  return {json.begin().key(), json.begin().value()};
}

}  // namespace trainyard::models::pt2
