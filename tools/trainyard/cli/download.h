// Download of one file over HTTP(S) or another protocol of libcurl. It resumes an earlier try.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

namespace trainyard::tools {

// Bytes so far, and total bytes (0: unknown).
using DownloadProgress = std::function<void(std::uint64_t, std::uint64_t)>;

// Append the missing bytes of `address` to `part`. If the server cannot resume, start again from byte 0.
// After an error `part` stays for the next try. UserError with the address and the message of libcurl.
void download(const std::string& address, const std::filesystem::path& part,
              const DownloadProgress& progress);

}  // namespace trainyard::tools
