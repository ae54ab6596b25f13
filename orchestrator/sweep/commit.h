// The commit of trainyard's source, as git describes it: "3f9a21c4d0e2", or "3f9a21c4d0e2-dirty" with uncommitted changes.
// Empty if it was not built in a repository. cmake/Commit.cmake writes it at each build.
#pragma once

#include <string>

namespace trainyard::orchestrator {

std::string commit();

}  // namespace trainyard::orchestrator
