// How c10d runs NCCL, which it reads from the environment when a group is made; and NCCL's version as text.
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

// 22907 → "2.29.7", as NCCL counts since 2.9.
std::string nccl_version_text(int code);

}  // namespace trainyard::runner
