// A small HTTP server for the files of a folder, for one test. It runs range_server.py as a process.
#pragma once

#include <filesystem>
#include <string>

#include <sys/types.h>

namespace trainyard::tests {

class FileServer {
 public:
  // The modes are those of range_server.py. Throws std::runtime_error if the server does not start.
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
