#include "orchestrator/rank/torchrun.h"

namespace trainyard::orchestrator {

std::map<std::string, std::string> torchrun_environment(const GangCommand& gang, const TaskPlace& place,
                                                        const StoreAddress& store) {
  const bool own_rendezvous = gang.foreign && place.world_size == 1;
  return {{"RANK", std::to_string(place.rank)},
          {"LOCAL_RANK", std::to_string(place.local_rank)},
          {"WORLD_SIZE", std::to_string(place.world_size)},
          {"LOCAL_WORLD_SIZE", std::to_string(place.local_world_size)},
          {"MASTER_ADDR", store.host},
          {"MASTER_PORT", store.port},
          {"TORCHELASTIC_RUN_ID", gang.run_id},
          {"TORCHELASTIC_USE_AGENT_STORE", own_rendezvous ? "False" : "True"}};
}

}  // namespace trainyard::orchestrator
