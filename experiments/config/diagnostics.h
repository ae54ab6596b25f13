// What is wrong with an experiment file: collected while it is read and expanded, so that one look at it
// finds everything. The same problem at the same place, met in many runs, is kept once.
#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"

namespace trainyard::experiments {

class Diagnostics {
 public:
  void error(const Location& location, const std::string& message) { add({location, message, false}); }
  void warning(const Location& location, const std::string& message) { add({location, message, true}); }
  void add_all(const Diagnostics& other);
  std::size_t errors() const { return errors_; }  // as often as reported
  std::vector<Problem> in_file_order() const;     // what stands in no line comes first

 private:
  void add(Problem problem);
  std::vector<Problem> problems_;
  std::set<std::string> seen_;
  std::size_t errors_ = 0;
};

}  // namespace trainyard::experiments
