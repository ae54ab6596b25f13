// The meeting place of ranks: a key-value store that other processes reach over TCP.
#pragma once

#include <iosfwd>

namespace trainyard::runner {

// Opens a store on a free port of the loopback interface, writes "127.0.0.1 PORT\n" to `out`, and serves
// until the parent process ends.
void serve_store(std::ostream& out);

}  // namespace trainyard::runner
