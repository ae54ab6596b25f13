#include "experiments/protocol/transport.h"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <sstream>
#include <string_view>
#include <utility>

#include "base/error.h"

namespace trainyard::experiments {

namespace {

constexpr std::pair<int, int> shares_from{2, 30};  // first NCCL version that lets ranks share a GPU

std::pair<int, int> major_and_minor(const std::string& version) {
  std::istringstream text(version);
  std::pair<int, int> numbers{0, 0};
  char dot = 0;
  text >> numbers.first >> dot >> numbers.second;
  return numbers;
}

// The first two ranks that share a GPU.
std::optional<std::pair<std::size_t, std::size_t>> shared(const std::vector<std::string>& gpus) {
  for (std::size_t rank = 1; rank < gpus.size(); ++rank) {
    const auto before = gpus.begin() + static_cast<std::ptrdiff_t>(rank);
    const auto same = std::find(gpus.begin(), before, gpus[rank]);
    if (same != before) return std::pair(static_cast<std::size_t>(same - gpus.begin()), rank);
  }
  return std::nullopt;
}

[[noreturn]] void refuse(const std::string& why, const std::string& advice) {
  throw UserError("communicator \"nccl\": " + why, advice);
}

void check_sharing(const std::pair<std::size_t, std::size_t>& ranks, const NcclSupport& nccl) {
  const std::string who =
      "ranks " + std::to_string(ranks.first) + " and " + std::to_string(ranks.second) + " share a GPU";
  const std::string advice = "use fewer ranks, or communicator = \"auto\", which copies through the host";
  if (major_and_minor(nccl.version) < shares_from)
    refuse(who + ", which NCCL supports from version 2.30, and this is " + nccl.version, advice);
  if (!nccl.several_ranks_gpu)
    refuse(who + ", which NCCL supports only if " + multi_rank_variable + "=1 is set", advice);
}

}  // namespace

Transport transport_of(const std::string& communicator, const std::vector<std::string>& gpus,
                       const NcclSupport& nccl) {
  const bool wants_nccl = communicator == "nccl" && gpus.size() > 1;
  const bool on_gpus = std::ranges::none_of(gpus, [](const auto& gpu) { return gpu.empty(); });
  if (gpus.empty() || !on_gpus) {
    if (wants_nccl)
      refuse("ranks train on CPU cores", "leave communicator out, or set accelerator = \"cuda\"");
    return Transport::host;
  }
  if (communicator == "gloo") return Transport::host_copies;
  const auto sharing = shared(gpus);
  if (!wants_nccl) return nccl.version.empty() || sharing ? Transport::host_copies : Transport::nccl;
  if (nccl.version.empty()) refuse("trainyard-runner was built without NCCL", "leave communicator out");
  if (sharing) check_sharing(*sharing, nccl);
  return Transport::nccl;
}

NcclSupport nccl_support(const std::string& version) {
  const char* enabled = std::getenv(multi_rank_variable);
  return {version, enabled != nullptr && std::string_view(enabled) == "1"};
}

}  // namespace trainyard::experiments
