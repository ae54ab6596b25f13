// The connection from ranks on several hosts to the store, which listens on the loopback interface beside rank 0.
//
//   rank ── 127.0.0.1 ── entrance ═══ network ═══ gateway ── 127.0.0.1 ── store
//
// - The task of each other rank has an entrance. It admits only connections of its own user.
// - The task of rank 0 has a gateway. It admits only hosts of the job that prove that they know the secret of the
//   launch (launch_secret.h). The entrance asks the gateway for the same proof.
// - What passes then is neither encrypted nor signed: docs/security.md.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/sockets/socket_relay.h"
#include "orchestrator/rank/launch_secret.h"
#include "orchestrator/rank/rendezvous.h"

namespace trainyard::orchestrator {

// - `store`: its address on this host.
// - `interface`: listen on its address only; empty: on all addresses. UserError if it has none.
// - `is_peer`: whether an address, "10.0.0.7", is one of a host of the job. Called from several threads.
std::unique_ptr<SocketRelay> store_gateway(const LaunchSecret& secret, const StoreAddress& store,
                                           const std::string& interface,
                                           std::function<bool(const std::string& address)> is_peer);

// `gateway`: its numeric address, from `find_gateway`.
std::unique_ptr<SocketRelay> store_entrance(const LaunchSecret& secret, const StoreAddress& gateway);

// The first address with a gateway that knows the secret, as a number. Empty if there is none.
std::optional<StoreAddress> find_gateway(const LaunchSecret& secret, const RendezvousEndpoint& endpoint);

}  // namespace trainyard::orchestrator
