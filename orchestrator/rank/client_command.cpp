#include "orchestrator/rank/client_command.h"

#include <cerrno>
#include <sstream>
#include <system_error>
#include <thread>

#include <sys/mman.h>
#include <unistd.h>

#include "base/whole_file.h"

namespace trainyard::orchestrator {

namespace {

// What it says stays in memory: a killed orchestrator leaves no file.
int new_output() {
  const int fd = ::memfd_create("trainyard-client", MFD_CLOEXEC);
  if (fd < 0) throw std::system_error(errno, std::generic_category(), "memfd_create");
  return fd;
}

}  // namespace

ClientCommand::ClientCommand(std::vector<std::string> argv)
    : fd_(new_output()), output_("/proc/self/fd/" + std::to_string(fd_)) {
  try {
    process_ = start_process({.argv = std::move(argv), .environment = {}, .cores = {}, .log = output_});
  } catch (...) {
    ::close(fd_);
    throw;
  }
}

ClientCommand::~ClientCommand() {
  process_.reset();
  ::close(fd_);
}

std::optional<ClientAnswer> ClientCommand::poll() {
  const auto status = process_->poll();
  if (!status) return std::nullopt;
  return ClientAnswer{*status, whole_file(output_)};
}

std::optional<ClientAnswer> ClientCommand::wait(std::chrono::milliseconds at_most) {
  const auto deadline = std::chrono::steady_clock::now() + at_most;
  while (true) {
    if (auto answer = poll()) return answer;
    if (std::chrono::steady_clock::now() > deadline) return std::nullopt;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);)
    if (!line.empty()) lines.push_back(line);
  return lines;
}

std::string complaint(const ClientAnswer& answer) {
  std::string last = to_text(answer.status);
  for (const std::string& line : lines_of(answer.text)) {
    const auto head = line.find("error: ");
    if (head != std::string::npos) return line.substr(head + 7);
    last = line;
  }
  return last;
}

}  // namespace trainyard::orchestrator
