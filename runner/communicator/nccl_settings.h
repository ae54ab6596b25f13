// Environment variables that c10d and NCCL read when a group is made, and NCCL's version as text.
#pragma once

#include <string>

namespace trainyard::runner {

// Sets the variables. Those that protect other runs replace a value in the environment, the others do not.
// `shared_gpu`: ranks share a GPU. Call it before there are threads that read the environment.
void set_nccl_environment(bool shared_gpu);

// 22907 → "2.29.7". Versions before 2.9 have another code: 2708 → "2.7.8".
std::string nccl_version_text(int code);

}  // namespace trainyard::runner
