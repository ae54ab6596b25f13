#include "runner/communicator/nccl_communicator.h"

#include <numeric>
#include <utility>

#include <nccl.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>

#include "runner/communicator/nccl_settings.h"
#include "runner/communicator/process_groups.h"

namespace trainyard::runner {

std::unique_ptr<Communicator> nccl_communicator(const Store& store, const std::string& name,
                                                const GroupOptions& group, at::Device device,
                                                std::unique_ptr<Communicator> host) {
  const auto make = [store, device, timeout = group.timeout](const GroupPlace& place) -> DeviceGroup {
    auto options = c10d::ProcessGroupNCCL::Options::create();
    options->timeout = timeout;
    options->group_name = place.name;  // for NCCL's messages
    options->global_ranks_in_group.resize(static_cast<std::size_t>(place.size));
    std::iota(options->global_ranks_in_group.begin(), options->global_ranks_in_group.end(), 0);
    auto made = c10::make_intrusive<c10d::ProcessGroupNCCL>(
        c10::make_intrusive<c10d::PrefixStore>(place.name, store), place.rank, place.size, options);
    if (place.connect_now) made->eagerConnectSingleDevice(device);
    return made;
  };
  return device_groups(name, group, device, std::move(host), "nccl", make);
}

std::string nccl_version() {
  int code = 0;
  return ncclGetVersion(&code) == ncclSuccess ? nccl_version_text(code) : "";
}

}  // namespace trainyard::runner
