// Environment variables that c10d and NCCL read when a group is made, and NCCL's version as text.
#pragma once

#include <span>
#include <string>

namespace trainyard::runner {

struct NcclSetting {
  std::string name;
  std::string value;
  enum class When { always, unless_set, shared } when;  // shared: if ranks share a GPU, unless set
  std::string why;
};
std::span<const NcclSetting> nccl_settings();

// Sets the variables. `always` replaces a value in the environment, the others do not. `shared` only if
// `shared_gpu`. Call it before there are threads that read the environment.
void set_nccl_environment(bool shared_gpu);

// 22907 → "2.29.7". Versions before 2.9 have another code: 2708 → "2.7.8".
std::string nccl_version_text(int code);

}  // namespace trainyard::runner
