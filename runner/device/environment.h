// What the launcher tells a process: torchrun's variables and TRAINYARD_RUN. Without them the process is the
// only rank.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace trainyard::runner {

struct Environment {
  int rank = 0;
  int world_size = 1;
  int local_rank = 0;
  int local_world_size = 1;
  std::string store_host = "127.0.0.1";  // MASTER_ADDR
  std::uint16_t store_port = 0;          // MASTER_PORT; 0 = there is no store
  bool agent_store = false;              // the launcher's store serves; else rank 0 opens one at that port
  std::string run_id;                    // TORCHELASTIC_RUN_ID: prefix of all keys in the store
  std::filesystem::path run_file;        // TRAINYARD_RUN
  bool one_host() const { return local_world_size == world_size; }
};

// UserError names the variable that is missing, not a number or contradicts another.
Environment read_environment();

}  // namespace trainyard::runner
