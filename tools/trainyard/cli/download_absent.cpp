// Replacement for download.cpp in builds without libcurl (TRAINYARD_DOWNLOADS=OFF).
#include "base/error.h"
#include "tools/trainyard/cli/download.h"

namespace trainyard::tools {

void download(const std::string& address, const std::filesystem::path&, const DownloadLimits&,
              const DownloadProgress&) {
  throw UserError("this build of trainyard cannot download files",
                  "download " + address + " by hand, or build with -DTRAINYARD_DOWNLOADS=ON");
}

}  // namespace trainyard::tools
