// Experiments that are run under several launchers. Their result rows must be the same, except for times.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/program.h"

namespace trainyard::cluster {

// A user program that trains nothing: it appends a line to `starts`, sleeps and writes its `end` record.
std::string sleeping_program(double seconds);
std::string held_program();  // waits until the file `go` exists instead

// An experiment with one strategy that runs this program on `replicas` ranks.
std::string sleeping_file(int seeds, int replicas, const std::string& machine);

// A program whose rank 1 dies with an error while the other ranks wait for ever.
inline constexpr const char* dying_program =
    "#!/bin/sh\n[ $RANK = 1 ] && { echo 'error: the loss is not a number' >&2; exit 3; }\nsleep 1000 "
    "&\nwait\n";

// An experiment: mlp on one rank and on two, and the documented PyTorch program (train.py) on two.
std::string mixed_file(const std::string& machine);

// The result rows of that experiment as processes of this host. Computed once.
const std::vector<std::string>& rows_here();

// One line "key attempt rank" for each start of a rank, sorted.
std::vector<std::string> starts(const std::filesystem::path& folder);

}  // namespace trainyard::cluster
