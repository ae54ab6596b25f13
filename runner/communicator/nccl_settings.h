// How c10d is to run NCCL. It reads this from the environment when a group is made.
#pragma once

#include <span>
#include <string>

namespace trainyard::runner {

struct NcclSetting {
  std::string name;
  std::string value;
  enum class When { always, unless_set, shared } when;  // shared: where ranks share a GPU, unless set
  std::string why;
};
std::span<const NcclSetting> nccl_settings();

// Sets those that `shared_gpu` asks for: `always` whatever the environment says, others where it has none.
// Before there are threads that read it.
void set_nccl_environment(bool shared_gpu);

}  // namespace trainyard::runner
