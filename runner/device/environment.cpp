#include "runner/device/environment.h"

#include <charconv>
#include <cstdlib>
#include <optional>

#include "base/error.h"

namespace trainyard::runner {

namespace {

std::optional<std::string> text(const char* name) {
  const char* value = std::getenv(name);
  return value && *value ? std::optional<std::string>(value) : std::nullopt;
}

int integer(const char* name, int fallback, int minimum, int maximum) {
  const auto value = text(name);
  if (!value) return fallback;
  int number = 0;
  const auto [end, error] = std::from_chars(value->data(), value->data() + value->size(), number);
  if (error != std::errc() || end != value->data() + value->size() || number < minimum || number > maximum) {
    throw UserError(std::string(name) + "=" + *value + " is not an integer in " + std::to_string(minimum) +
                    " … " + std::to_string(maximum));
  }
  return number;
}

}  // namespace

Environment read_environment() {
  constexpr int most_ranks = 1 << 20;
  Environment environment;
  environment.world_size = integer("WORLD_SIZE", 1, 1, most_ranks);
  environment.rank = integer("RANK", 0, 0, environment.world_size - 1);
  environment.local_world_size =
      integer("LOCAL_WORLD_SIZE", environment.world_size, 1, environment.world_size);
  environment.local_rank = integer("LOCAL_RANK", environment.rank % environment.local_world_size, 0,
                                   environment.local_world_size - 1);
  environment.store_host = text("MASTER_ADDR").value_or(environment.store_host);
  environment.store_port = static_cast<std::uint16_t>(integer("MASTER_PORT", 0, 0, 65535));
  environment.agent_store = text("TORCHELASTIC_USE_AGENT_STORE") == "True";
  environment.run_id = text("TORCHELASTIC_RUN_ID").value_or("");
  const auto run_file = text("TRAINYARD_RUN");
  if (!run_file) {
    throw UserError("TRAINYARD_RUN is not set",
                    "it names the run.json to train; `trainyard show RUN` prints the "
                    "whole command for one rank");
  }
  environment.run_file = *run_file;
  if (environment.world_size > 1 && environment.store_port == 0) {
    throw UserError("WORLD_SIZE is " + std::to_string(environment.world_size) + " but MASTER_PORT is not set",
                    "start trainyard-store and pass the address that it prints");
  }
  return environment;
}

}  // namespace trainyard::runner
