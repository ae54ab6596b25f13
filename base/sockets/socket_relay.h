// Relay of TCP connections: it accepts them on one socket, lets a door decide about each, and copies bytes
// between an admitted connection and the one that the door opens for it. Each connection has its own threads.
#pragma once

#include <functional>
#include <list>
#include <mutex>
#include <string>
#include <thread>

#include "base/fd.h"

namespace trainyard {

// The far end for a new connection. Empty: the connection is refused, and closed. It must not throw. It may wait
// for some seconds, because each call has its own thread.
using Door = std::function<FileDescriptor(int connection)>;

// - At most 512 connections can wait for the door. If there are more, the oldest one is closed. So idle
//   connections take no place from others.
// - If one end closes its half of a connection, so does the other. All connections end with the relay.
class SocketRelay {
 public:
  SocketRelay(FileDescriptor listening, Door door);
  ~SocketRelay();
  SocketRelay(const SocketRelay&) = delete;
  SocketRelay& operator=(const SocketRelay&) = delete;
  int port() const { return port_; }

 private:
  struct Connection {
    FileDescriptor near, far;  // `near` is empty once the connection is over
    bool waits = true;         // for the door
    std::jthread thread;       // uses the connection, so it ends first
  };
  void accept_all();
  void begin(FileDescriptor near);
  void serve(Connection& connection);

  int port_;
  FileDescriptor listening_;
  Door door_;
  std::mutex mutex_;                   // for what follows
  std::list<Connection> connections_;  // oldest first
  bool stopped_ = false;
  std::thread thread_;  // starts last
};

// Sends all bytes at once. For few bytes on a new connection, whose buffer is empty.
bool send_now(int connection, const std::string& bytes);

}  // namespace trainyard
