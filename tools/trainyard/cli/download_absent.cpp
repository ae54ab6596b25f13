// In place of download.cpp where the build leaves libcurl out (TRAINYARD_DOWNLOADS).
#include "base/error.h"
#include "tools/trainyard/cli/download.h"

namespace trainyard::tools {

void download(const std::string& address, const std::filesystem::path&, const DownloadProgress&) {
  throw UserError("this build of trainyard downloads nothing",
                  "put the file of " + address + " there by hand, or build with -DTRAINYARD_DOWNLOADS=ON");
}

}  // namespace trainyard::tools
