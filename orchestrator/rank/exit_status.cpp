#include <csignal>
#include <cstring>

#include "orchestrator/rank/process.h"

namespace trainyard::orchestrator {

std::string to_text(const ExitStatus& status) {
  if (status.signal == 0) return "exit code " + std::to_string(status.code);
  const char* name = ::sigabbrev_np(status.signal);
  return "killed by signal " + std::to_string(status.signal) +
         (name != nullptr ? " (SIG" + std::string(name) + ")" : "");
}

}  // namespace trainyard::orchestrator
