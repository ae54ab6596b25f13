// The transport between ranks, case by case.
#include "experiments/protocol/transport.h"

#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "tests/support/user_error.h"

using namespace trainyard;
using namespace trainyard::experiments;

namespace {

using Gpus = std::vector<std::string>;
const Gpus cores{"", ""}, own{"GPU-a", "GPU-b"}, one_for_both{"GPU-a", "GPU-a"};
const NcclSupport none{}, old{"2.29.7", true}, disabled{"2.30.3", false}, sharing{"2.32.3", true};

std::string refusal(const Gpus& gpus, const NcclSupport& nccl) {
  return tests::user_error_of([&] { transport_of("nccl", gpus, nccl); });
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("ranks use NCCL if each has its own GPU, and the host if some share one") {
  struct Case {
    const char* communicator;
    const Gpus& gpus;
    const NcclSupport& nccl;
    Transport transport;
  };
  for (const Case& each : std::vector<Case>{
           {"auto", cores, none, Transport::host},
           {"auto", cores, sharing, Transport::host},
           {"gloo", cores, none, Transport::host},
           {"auto", own, old, Transport::nccl},
           {"nccl", own, old, Transport::nccl},
           {"auto", own, none, Transport::host_copies},
           {"gloo", own, old, Transport::host_copies},
           {"auto", one_for_both, old, Transport::host_copies},
           {"auto", one_for_both, sharing, Transport::host_copies},  // experimental: only on request
           {"gloo", one_for_both, sharing, Transport::host_copies},
           {"nccl", one_for_both, sharing, Transport::nccl},
       }) {
    CAPTURE(each.communicator);
    CAPTURE(each.nccl.version);
    CAPTURE(each.gpus[0]);
    CHECK(transport_of(each.communicator, each.gpus, each.nccl) == each.transport);
  }
}

TEST_CASE("NCCL that cannot work is refused with a reason and advice") {
  CHECK(has(refusal(cores, sharing), "ranks train on CPU cores; leave communicator out, or set accelerator"));
  CHECK(has(refusal(own, none), "trainyard-runner was built without NCCL"));
  CHECK(has(refusal({"GPU-a", "GPU-b", "GPU-b"}, old),
            "ranks 1 and 2 share a GPU, which NCCL supports from version 2.30, and this is 2.29.7; use "
            "fewer ranks"));
  CHECK(has(refusal(one_for_both, disabled), "supports only if NCCL_MULTI_RANK_GPU_ENABLE=1 is set"));
  CHECK(refusal(one_for_both, {"3.0.1", true}).empty());
}

TEST_CASE("a single rank needs no NCCL, whatever the file requests") {
  CHECK(transport_of("nccl", {""}, none) == Transport::host);
  CHECK_NOTHROW(transport_of("nccl", {"GPU-a"}, none));
}
