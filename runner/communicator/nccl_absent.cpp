// Replacement for nccl_communicator.cpp in builds without CUDA.
#include "base/error.h"
#include "runner/communicator/nccl_communicator.h"

namespace trainyard::runner {

std::unique_ptr<Communicator> nccl_communicator(const Store&, const std::string&, const GroupOptions&,
                                                at::Device, std::unique_ptr<Communicator>) {
  throw InternalError("NCCL was requested in a build without NCCL");
}

std::string nccl_version() {
  return "";
}

}  // namespace trainyard::runner
