// Errors and warnings about an experiment file, collected while it is read and expanded. One check thus
// reports all of them. A problem that many runs have at the same location is kept once.
#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"

namespace trainyard::experiments {

class Diagnostics {
 public:
  void error(const Location& location, const std::string& message) { add({location, message, false}); }
  void warning(const Location& location, const std::string& message) { add({location, message, true}); }
  // The message as a format string and its arguments.
  template <class First, class... Others>
  void error(const Location& location, fmt::format_string<First, Others...> message, First&& first,
             Others&&... others) {
    error(location, fmt::format(message, std::forward<First>(first), std::forward<Others>(others)...));
  }
  template <class First, class... Others>
  void warning(const Location& location, fmt::format_string<First, Others...> message, First&& first,
               Others&&... others) {
    warning(location, fmt::format(message, std::forward<First>(first), std::forward<Others>(others)...));
  }
  void add_all(const Diagnostics& other);
  std::size_t errors() const { return errors_; }  // counts repetitions
  std::vector<Problem> in_file_order() const;     // problems without a line come first

 private:
  void add(Problem problem);
  std::vector<Problem> problems_;
  std::set<std::string> seen_;
  std::size_t errors_ = 0;
};

}  // namespace trainyard::experiments
