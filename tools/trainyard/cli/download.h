// One file over HTTP(S) or another protocol of libcurl, resumed where an earlier try ended.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

namespace trainyard::tools {

// Bytes there are, bytes there will be (0: not known).
using DownloadProgress = std::function<void(std::uint64_t, std::uint64_t)>;

// Appends to `part` what it lacks of `address`; starts anew where the server cannot continue. `part` is left
// as far as it came, for the next try. UserError names the address and what the server or the network said.
void download(const std::string& address, const std::filesystem::path& part,
              const DownloadProgress& progress);

}  // namespace trainyard::tools
