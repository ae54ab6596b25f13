# cmake -DSOURCE=DIR -DFILE=commit.cpp -P Commit.cmake: writes the source of orchestrator/sweep/commit.h, if it has changed.
execute_process(COMMAND git describe --always --dirty --abbrev=12 --exclude=* WORKING_DIRECTORY "${SOURCE}"
  OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
if(failed)
  set(commit "")
endif()
file(CONFIGURE OUTPUT "${FILE}" @ONLY CONTENT [[
#include "orchestrator/sweep/commit.h"

namespace trainyard::orchestrator {

std::string commit() {
  return "@commit@";
}

}  // namespace trainyard::orchestrator
]])
