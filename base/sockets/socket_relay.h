// Relay of TCP connections: it accepts them on one socket, lets a `Door` decide about each, and copies bytes
// between an admitted connection and the one that the door opens for it. It has a thread of its own, and one for
// each far end that is being opened.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "base/fd.h"

namespace trainyard {

// Decides who may pass. It must not throw.
class Door {
 public:
  virtual ~Door() = default;
  // Bytes that are sent to a new connection. Nothing: it is refused, and closed at once. Called in the relay's
  // thread, so it must not wait.
  virtual std::optional<std::string> greeting(int connection) = 0;
  virtual std::size_t answer_size() const = 0;  // bytes that the connection sends then
  // The far end of a connection that was greeted and has answered. Empty: it is refused. Called in a thread of its
  // own, so it may wait for some seconds. Several calls can run at the same time.
  virtual FileDescriptor open(int connection, const std::string& greeting,
                              const std::string& answer) const = 0;
};

// - A connection that has not answered after 10 s is closed. If more than 512 have not answered, the oldest one is
//   closed. So idle connections take no place from others.
// - At most 64 far ends are opened at the same time. Further callers wait. Admitted connections never wait for them.
// - If one end closes its half of a connection, so does the other. All connections end with the relay.
class SocketRelay {
 public:
  SocketRelay(FileDescriptor listening, std::unique_ptr<Door> door);
  ~SocketRelay();
  SocketRelay(const SocketRelay&) = delete;
  SocketRelay& operator=(const SocketRelay&) = delete;
  int port() const { return port_; }

 private:
  class Loop;
  int port_;
  std::unique_ptr<Loop> loop_;
};

// Sends all bytes at once. For few bytes on a new connection, whose buffer is empty.
bool send_now(int connection, const std::string& bytes);

}  // namespace trainyard
