// The name of this host, as records, circumstances and messages carry it: the one place that asks the system.
#pragma once

#include <string>

namespace trainyard {

// Always UTF-8, on one line and without control characters, whatever bytes the system gives: Linux takes any,
// a record takes UTF-8 only.
std::string host_name();

}  // namespace trainyard
