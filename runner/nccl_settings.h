// How c10d is to run NCCL. It reads this from the environment when a group is made.
#pragma once

#include <span>
#include <string>

namespace trainyard::runner {

struct NcclSetting {
  std::string name;
  std::string value;
  bool fixed;  // whatever the user's environment says
  std::string why;
};
std::span<const NcclSetting> nccl_settings();

// Sets those that are fixed, or that the environment does not have. Before there are threads that read it.
void set_nccl_environment();

}  // namespace trainyard::runner
