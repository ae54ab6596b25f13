// A key-value store over TCP where the ranks of a run meet. It speaks the protocol of the TCPStore of PyTorch 2.4 and
// later, so programs use it as the store of torchrun, and it needs no LibTorch.
//
// - It listens on a port of the loopback interface, and closes connections of other users before it reads a byte.
//   It has no other authentication. The way to it from other hosts is orchestrator/rank/store_relay.h.
// - One thread serves all connections. Keys and values stay in memory until the object ends.
// - A connection that sends something else is closed. Limits: 8 KiB per key, 8 MiB per value, 131,072 keys per request.
// - Source of the protocol: torch/csrc/distributed/c10d/TCPStoreBackend.hpp, and the requests of TCPStore.cpp.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"

namespace trainyard {

class RendezvousStore {
 public:
  RendezvousStore();  // listens from now on; UserError if this host does not say which user owns a connection
  int port() const { return port_; }
  void serve(const std::function<bool()>& goes_on);  // until it answers false; asks at least every 0.2 s

 private:
  struct Client {
    FileDescriptor connection;
    std::string in, out;  // bytes that have arrived, and those to send
    bool is_valid = false, is_open = true;
    std::vector<std::string> awaited;    // keys
    std::optional<std::string> barrier;  // key
  };
  class Request;

  void accept_all();
  void receive(Client& client);
  void answer(Client& client, Request& request);
  void store(const std::string& key, std::string value);
  void changed(const std::string& key, bool wakes_one = false);
  const std::string& value_or(const std::string& key, const std::string& other) const;
  bool has_all(const std::vector<std::string>& keys) const;
  void meet(Client& client, const std::string& key, std::int64_t number);

  std::uint16_t port_ = 0;
  FileDescriptor listening_;
  std::list<Client> clients_;
  std::map<std::string, std::string> values_;
  std::map<std::string, std::deque<std::string>> queues_;
};

}  // namespace trainyard
