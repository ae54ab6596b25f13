// The connection from ranks on several hosts to the store, which listens on the loopback interface beside rank 0.
//
//   rank ── 127.0.0.1 ── StoreEntrance ═══ network ═══ StoreGateway ── 127.0.0.1 ── store
//
// - The task of each other rank has an entrance. It admits only connections of its own user.
// - The task of rank 0 has a gateway. It admits only hosts of the job that prove that they know the secret of the
//   launch (launch_secret.h). The entrance asks the gateway for the same proof.
// - What passes then is neither encrypted nor signed: docs/security.md.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/sockets/socket_relay.h"
#include "orchestrator/rank/launch_secret.h"
#include "orchestrator/rank/rendezvous.h"

namespace trainyard::orchestrator {

class StoreGateway {
 public:
  // - `store`: its address on this host.
  // - `interface`: listen on its address only; empty: on all addresses. UserError if it has none.
  // - `is_peer`: whether an address, "10.0.0.7", is one of a host of the job. Called from another thread.
  StoreGateway(const LaunchSecret& secret, const StoreAddress& store, const std::string& interface,
               std::function<bool(const std::string& address)> is_peer);
  int port() const { return relay_.port(); }

 private:
  SocketRelay relay_;
};

class StoreEntrance {
 public:
  // `gateway`: its numeric address, from `find_gateway`.
  StoreEntrance(const LaunchSecret& secret, const StoreAddress& gateway);
  StoreAddress address() const { return {"127.0.0.1", std::to_string(relay_.port())}; }

 private:
  SocketRelay relay_;
};

// The first address with a gateway that knows the secret, as a number. Empty if there is none.
std::optional<StoreAddress> find_gateway(const LaunchSecret& secret, const RendezvousEndpoint& endpoint);

}  // namespace trainyard::orchestrator
