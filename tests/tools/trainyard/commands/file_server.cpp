#include "tests/tools/trainyard/commands/file_server.h"

#include <array>
#include <stdexcept>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace trainyard::tests {

FileServer::FileServer(const std::filesystem::path& folder, const std::string& mode) {
  std::array<int, 2> in{};
  std::array<int, 2> out{};
  if (pipe2(in.data(), O_CLOEXEC) != 0 || pipe2(out.data(), O_CLOEXEC) != 0)
    throw std::runtime_error("no pipe");
  child_ = fork();
  if (child_ == 0) {
    dup2(in[0], STDIN_FILENO);
    dup2(out[1], STDOUT_FILENO);
    execlp("python3", "python3", TRAINYARD_RANGE_SERVER, folder.c_str(), mode.c_str(), nullptr);
    _exit(127);
  }
  close(in[0]);
  close(out[1]);
  end_ = in[1];
  std::string port;
  for (char byte = 0; ::read(out[0], &byte, 1) == 1 && byte != '\n';) port += byte;
  close(out[0]);
  if (port.empty()) throw std::runtime_error("python3 range_server.py did not start");
  address_ = "http://127.0.0.1:" + port;
}

FileServer::~FileServer() {
  close(end_);
  waitpid(child_, nullptr, 0);
}

}  // namespace trainyard::tests
