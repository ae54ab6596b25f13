// The longest time that a test waits for an event. It is a limit for hangs, not an expectation of speed.
// On a busy machine a process may pause for seconds.
#pragma once

namespace trainyard::tests {

inline constexpr double patience = 60;  // seconds

}  // namespace trainyard::tests
