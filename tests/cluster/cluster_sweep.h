// A sweep under a launcher, and what must be the same under all of them: its rows, times aside.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "program.h"

namespace trainyard::cluster {

// A program of the user's that trains nothing: notes its start in `starts`, waits so long, says it has
// finished.
std::string sleeping_program(double seconds);

// An experiment of arms that are that program, `replicas` ranks each.
std::string sleeping_file(int seeds, int replicas, const std::string& machine);

// The rows of a yard's views, times and numbers of attempts aside.
std::vector<std::string> rows_of(const std::filesystem::path& yard);

// How often ranks were started, and which: "key attempt rank", sorted.
std::vector<std::string> starts(const std::filesystem::path& folder);

}  // namespace trainyard::cluster
