// A process that forks others for this one. A fork copies the tables of all memory in use, and in a long sweep that takes
// milliseconds. So the server starts while this process has little memory.
//
// Its children are children of this process (CLONE_PARENT). It ends with this process, however that happens.
#pragma once

#include <filesystem>
#include <functional>
#include <span>
#include <string>

#include <sys/types.h>

#include "base/fd.h"

namespace trainyard::orchestrator {

// Leaves the terminal and the session, and takes the name "rank-supervisor", so that `pkill -f trainyard` does not end this
// process with the orchestrator. Signals have their default effect or, if a terminal sends them, none. The descriptors
// `kept` become 3, 4 and so on, and all others are closed. UserError if it fails.
void detach(std::span<const int> kept);

class ForkServer {
 public:
  // `task` is called in each child, with a request. The child then ends with exit code 0. The first two descriptors of the
  // request are `first_fd` and the next one.
  struct Request {
    std::string text;
    std::filesystem::path cgroup;  // the child begins in it; empty: in that of this process
  };
  static constexpr int first_fd = 3;
  using Task = std::function<void(const Request& request)>;

  // Starts the server. If the system allows no new process, there is none: `pid` and `fork` return −1.
  explicit ForkServer(const Task& task);
  ~ForkServer();  // ends the server, not its children
  ForkServer(const ForkServer&) = delete;
  ForkServer& operator=(const ForkServer&) = delete;

  pid_t pid() const { return pid_; }

  // The pid of a new child of this process, which gets copies of `fds`. −1 if the server cannot make one.
  pid_t fork(const Request& request, std::span<const int, 2> fds);

 private:
  FileDescriptor socket_;
  pid_t pid_ = -1;
};

}  // namespace trainyard::orchestrator
