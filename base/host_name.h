// The name of this host, as records, the recorded environment and messages show it.
// No other function asks the system for it.
#pragma once

#include <string>

namespace trainyard {

// One line of UTF-8 without control characters. Linux allows any bytes in a host name, but a record
// must be UTF-8.
std::string host_name();

}  // namespace trainyard
