// Where a rank stands: replicas × stages, rank = replica · stages + stage.
#pragma once

namespace trainyard::runner {

struct Position {
  int replica = 0;
  int stage = 0;
  bool operator==(const Position&) const = default;
};

struct Mesh {
  int replicas = 1;
  int stages = 1;
  int world_size() const { return replicas * stages; }
  Position position(int rank) const { return {rank / stages, rank % stages}; }
};

}  // namespace trainyard::runner
