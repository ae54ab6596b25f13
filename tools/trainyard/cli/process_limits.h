// Limits of this process (`ulimit`) that would end a command without a clear message.
#pragma once

#include <string>

namespace trainyard::tools {

// UserError if this process may open fewer than 64 files (`ulimit -n`). A run of two ranks needs about 20.
void require_open_files();

// Why this process has too little stack (`ulimit -s`): less than 256 KiB. Empty if it has enough. Without this check a
// command ends by a segmentation fault.
std::string stack_problem();

// Let a write that exceeds `ulimit -f` fail with EFBIG. By default the signal SIGXFSZ ends the process.
void survive_file_size_limit();

// "; files may have at most 1024 bytes (`ulimit -f`)" if a limit of this process explains the errno. Else empty.
std::string limit_text(int error);

}  // namespace trainyard::tools
