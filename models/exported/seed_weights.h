// First weights of a seed: "net.seed-3.safetensors" beside "net.pt2", which `trainyard export --seeds` writes.
// They replace stored values of the graph, so whoever builds the network, or a stage of it, needs nothing else.
// The file may be hostile, as that of the graph.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "models/graph.h"

namespace trainyard::models {

std::filesystem::path seed_file(const std::filesystem::path& exported, std::uint64_t seed);

struct SeedWeights {
  Graph graph;         // with the values of the file in place of those of parameters and buffers
  std::string sha256;  // of the file
};

// Reads the file. `network`: SHA-256 of the .pt2 file that `graph` comes from.
// - Buffers that state_dict leaves out, and constants, keep their values.
// - UserError if the file is missing or damaged, belongs to another .pt2 file, or does not have all parameters.
SeedWeights with_seed_weights(Graph graph, const std::filesystem::path& file, const std::string& network);

}  // namespace trainyard::models
