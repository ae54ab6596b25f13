// Every kind of communicator, on threads of the test as its ranks.
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

// `rank` on `size` threads at once; what each threw, empty where nothing.
std::vector<std::string> errors_of(const Transport& transport, int size, const Rank& rank,
                                   std::chrono::milliseconds timeout = std::chrono::seconds(60));

// doctest's checks are not for threads of older versions: a rank says what is wrong by throwing.
void expect(bool holds, const std::string& what);

// The same, where no rank may throw.
void run(const Transport& transport, int size, const Rank& rank);

}  // namespace trainyard::runner::testing
