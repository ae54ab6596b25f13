// Every kind of communicator, with threads of the test as ranks.
#pragma once

#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runner/communicator/communicator.h"

namespace trainyard::runner::testing {

struct Transport {
  const char* name;
  std::unique_ptr<Communicator> (*meet)(const Store&, const std::string&, const GroupOptions&);
};
extern const std::array<Transport, 4> transports;
const Transport& transport_named(const std::string& name);

using Rank = std::function<void(Communicator&)>;

// Runs `rank` on `size` threads at once. Returns the error of each thread, empty if it threw nothing.
std::vector<std::string> errors_of(const Transport& transport, int size, const Rank& rank,
                                   std::chrono::milliseconds timeout = std::chrono::seconds(60));

// Throws if `holds` is false. The checks of old versions of doctest are not thread-safe.
void expect(bool holds, const std::string& what);

// Runs `rank` on `size` threads. No rank may throw.
void run(const Transport& transport, int size, const Rank& rank);

}  // namespace trainyard::runner::testing
