// Download of one file over HTTPS, HTTP or from a file. It resumes an earlier try.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

namespace trainyard::tools {

// Bytes so far, and total bytes (0: unknown).
using DownloadProgress = std::function<void(std::uint64_t, std::uint64_t)>;

// What a download may do.
struct DownloadLimits {
  std::uint64_t bytes = 0;  // the size of the file; a server that sends more is cut off
  bool plain_http = false;  // http:// is allowed, because the caller checks a SHA-256
};

// Append the missing bytes of `address` to `part`. If the server cannot resume, start again from byte 0.
// - At most five redirects are followed: from HTTPS to HTTPS only, and never to a file.
// - After an error `part` stays for the next try, unless it became too large.
// - UserError with the address and the message of libcurl.
void download(const std::string& address, const std::filesystem::path& part, const DownloadLimits& limits,
              const DownloadProgress& progress);

}  // namespace trainyard::tools
