// How long a test waits for what must come: a limit for what hangs, and nothing that is expected of how fast
// a machine is. On one that is busy with other things a process may stand still for seconds.
#pragma once

namespace trainyard::tests {

inline constexpr double patience = 60;  // seconds

}  // namespace trainyard::tests
