// What is wrong with a part of an exported file. `for_file` adds the file and throws a UserError.
#pragma once

#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/text.h"

namespace trainyard::models::pt2 {

inline constexpr const char* export_again =
    "export the network again with `trainyard export`, or get an undamaged copy of the file";

class Fault : public std::runtime_error {
 public:
  // - `message`: what is wrong, on one line.
  // - `advice`: what to do about it.
  explicit Fault(const std::string& message, std::string advice = export_again)
      : std::runtime_error(message), advice_(std::move(advice)) {}
  const std::string& advice() const { return advice_; }

 private:
  std::string advice_;
};

// A text of the file within quotes: on one line, without control characters, at most 80 columns.
std::string in_quotes(std::string_view text);

// Runs `action`, and puts `place` before the message of its Fault.
template <class Action>
decltype(auto) within(const std::string& place, const Action& action) {
  try {
    return action();
  } catch (const Fault& fault) {
    throw Fault(place + ": " + fault.what(), fault.advice());
  }
}

// Runs `action`. A Fault becomes a UserError that names the file.
template <class Action>
auto for_file(const std::filesystem::path& path, const Action& action) {
  try {
    return action();
  } catch (const Fault& fault) {
    throw UserError(printable_line(path.string()) + ": " + fault.what(), fault.advice());
  }
}

}  // namespace trainyard::models::pt2
