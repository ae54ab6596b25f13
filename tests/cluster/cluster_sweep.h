// A sweep under a launcher, and what must be the same under all of them: its rows, times aside.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tests/e2e/support/program.h"

namespace trainyard::cluster {

// A program of the user's that trains nothing: notes its start in `starts`, waits so long, says it has
// finished.
std::string sleeping_program(double seconds);
std::string held_program();  // the same, and waits until the file `go` is there

// An experiment of arms that are that program, `replicas` ranks each.
std::string sleeping_file(int seeds, int replicas, const std::string& machine);

// A program whose rank 1 dies with an error while the others wait for ever.
inline constexpr const char* dying_program =
    "#!/bin/sh\n[ $RANK = 1 ] && { echo 'error: the loss is not a number' >&2; exit 3; }\nsleep 1000 "
    "&\nwait\n";

// An experiment of mlp on one rank and on two, and of the documented PyTorch program (train.py) on two.
std::string mixed_file(const std::string& machine);

// The rows of that experiment as processes of this host; run once.
const std::vector<std::string>& rows_here();

// How often ranks were started, and which: "key attempt rank", sorted.
std::vector<std::string> starts(const std::filesystem::path& folder);

}  // namespace trainyard::cluster
