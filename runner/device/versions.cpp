#include "runner/device/versions.h"

namespace trainyard::runner {

Versions versions() {
  return {TRAINYARD_VERSION, TRAINYARD_BUILD_TYPE, TRAINYARD_LIBTORCH_VERSION, TRAINYARD_CUDA_VERSION,
          TRAINYARD_NCCL_VERSION};
}

nlohmann::ordered_json to_json(const Versions& versions) {
  return {{"trainyard", versions.trainyard},
          {"build_type", versions.build_type},
          {"libtorch", versions.libtorch},
          {"cuda", versions.cuda},
          {"nccl", versions.nccl}};
}

std::string to_text(const Versions& versions) {
  std::string text =
      "trainyard " + versions.trainyard + " (" + versions.build_type + ", LibTorch " + versions.libtorch;
  if (!versions.cuda.empty()) text += ", CUDA " + versions.cuda;
  if (!versions.nccl.empty()) text += ", NCCL " + versions.nccl;
  return text + ")";
}

}  // namespace trainyard::runner
