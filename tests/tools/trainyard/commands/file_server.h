// A small HTTP server of a folder's files, for one test: tests/tools/trainyard/commands/range_server.py as a
// process.
#pragma once

#include <filesystem>
#include <string>

#include <sys/types.h>

namespace trainyard::tests {

class FileServer {
 public:
  // Modes as in range_server.py. Throws std::runtime_error where it does not start.
  FileServer(const std::filesystem::path& folder, const std::string& mode);
  ~FileServer();
  FileServer(const FileServer&) = delete;
  FileServer& operator=(const FileServer&) = delete;
  const std::string& address() const { return address_; }  // "http://127.0.0.1:PORT"

 private:
  pid_t child_ = -1;
  int end_ = -1;  // closing it ends the server
  std::string address_;
};

}  // namespace trainyard::tests
