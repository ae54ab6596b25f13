#include "tools/trainyard/cli/download.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <memory>

#include <curl/curl.h>

#include "base/error.h"
#include "base/files.h"
#include "base/loaded_library.h"
#include "base/plain_file.h"

namespace trainyard::tools {
namespace {

namespace fs = std::filesystem;

using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;
using Curl = std::unique_ptr<CURL, void (*)(CURL*)>;

struct Libcurl {
  LoadedLibrary library{"libcurl.so.4", "that downloads files", "libcurl4"};

  decltype(&curl_easy_init) init = library.function("curl_easy_init");
  decltype(&curl_easy_cleanup) cleanup = library.function("curl_easy_cleanup");
  decltype(&curl_easy_setopt) setopt = library.function("curl_easy_setopt");
  decltype(&curl_easy_perform) perform = library.function("curl_easy_perform");
  decltype(&curl_easy_strerror) strerror = library.function("curl_easy_strerror");
};

const Libcurl& libcurl() {
  static const Libcurl loaded;
  return loaded;
}

constexpr long longest_wait = 60;  // seconds with less than one byte per second
constexpr long most_redirects = 5;

File open_part(const fs::path& part, bool anew) {
  OpenedFile opened = open_plain(part, O_WRONLY | O_CREAT | (anew ? O_TRUNC : O_APPEND));
  File file(opened.fd ? ::fdopen(opened.fd.get(), "wb") : nullptr, &std::fclose);
  if (!file)
    throw UserError(part.string() + ": cannot be written: " + opened.problem,
                    "name a writable folder with --data");
  opened.fd.release();  // fclose closes it
  return file;
}

[[noreturn]] void refuse_more(const std::string& address, const fs::path& part, std::uint64_t bytes) {
  fs::remove(part);
  throw UserError("cannot download " + address + ": the server sends more than the " + std::to_string(bytes) +
                      " bytes of the published file",
                  "use another address with --from");
}

struct Reported {
  const DownloadProgress& progress;
  std::uint64_t before;  // bytes from earlier tries
};

struct Written {
  std::FILE* file;
  std::uint64_t left;  // bytes until the limit
  bool too_many = false;
  int error = 0;  // errno of a failed write
};

// Called by libcurl with received bytes. Any other result than their number ends the download.
std::size_t write(const char* bytes, std::size_t size, std::size_t count, void* client) {
  auto& written = *static_cast<Written*>(client);
  written.too_many = size * count > written.left;
  if (written.too_many) return 0;
  written.left -= size * count;
  const std::size_t done = std::fwrite(bytes, 1, size * count, written.file);
  if (done < size * count) written.error = errno;
  return done;
}

// A server decides where its redirects lead, so they may not leave the protocol that the user trusts.
void limit_protocols(CURL* curl, const std::string& address, bool plain_http) {
  const bool https = address.starts_with("https:");
#if LIBCURL_VERSION_NUM >= 0x075500
  libcurl().setopt(curl, CURLOPT_PROTOCOLS_STR, plain_http ? "https,http,file" : "https,file");
  libcurl().setopt(curl, CURLOPT_REDIR_PROTOCOLS_STR, https ? "https" : "https,http");
#else
  const long allowed = CURLPROTO_HTTPS | CURLPROTO_FILE | (plain_http ? CURLPROTO_HTTP : 0);
  libcurl().setopt(curl, CURLOPT_PROTOCOLS, allowed);
  libcurl().setopt(curl, CURLOPT_REDIR_PROTOCOLS, CURLPROTO_HTTPS | (https ? 0L : CURLPROTO_HTTP));
#endif
  libcurl().setopt(curl, CURLOPT_FOLLOWLOCATION, 1L);
  libcurl().setopt(curl, CURLOPT_MAXREDIRS, most_redirects);
}

int report(void* client, curl_off_t total, curl_off_t now, curl_off_t /*total_up*/, curl_off_t /*now_up*/) {
  const auto& reported = *static_cast<const Reported*>(client);
  const std::uint64_t whole = total > 0 ? reported.before + static_cast<std::uint64_t>(total) : 0;
  reported.progress(reported.before + static_cast<std::uint64_t>(now), whole);
  return 0;
}

// Try once, from byte `from` on. `text` receives libcurl's message about the result.
CURLcode try_once(const std::string& address, const fs::path& part, std::uint64_t from,
                  const DownloadLimits& limits, const DownloadProgress& progress, std::string& text) {
  const File file = open_part(part, from == 0);
  const Curl curl(libcurl().init(), libcurl().cleanup);
  if (!curl) throw InternalError("libcurl does not start");
  std::array<char, CURL_ERROR_SIZE> said{};
  Reported reported{progress, from};
  Written written{file.get(), limits.bytes - std::min(limits.bytes, from)};
  libcurl().setopt(curl.get(), CURLOPT_URL, address.c_str());
  limit_protocols(curl.get(), address, limits.plain_http);
  libcurl().setopt(curl.get(), CURLOPT_WRITEFUNCTION, &write);
  libcurl().setopt(curl.get(), CURLOPT_WRITEDATA, &written);
  libcurl().setopt(curl.get(), CURLOPT_RESUME_FROM_LARGE, static_cast<curl_off_t>(from));
  libcurl().setopt(curl.get(), CURLOPT_FAILONERROR, 1L);
  libcurl().setopt(curl.get(), CURLOPT_NOSIGNAL, 1L);
  libcurl().setopt(curl.get(), CURLOPT_CONNECTTIMEOUT, longest_wait);
  libcurl().setopt(curl.get(), CURLOPT_LOW_SPEED_LIMIT, 1L);
  libcurl().setopt(curl.get(), CURLOPT_LOW_SPEED_TIME, longest_wait);
  libcurl().setopt(curl.get(), CURLOPT_ERRORBUFFER, said.data());
  libcurl().setopt(curl.get(), CURLOPT_NOPROGRESS, 0L);
  libcurl().setopt(curl.get(), CURLOPT_XFERINFOFUNCTION, &report);
  libcurl().setopt(curl.get(), CURLOPT_XFERINFODATA, &reported);
  const CURLcode result = libcurl().perform(curl.get());
  text = said.front() == '\0' ? libcurl().strerror(result) : said.data();
  if (written.too_many) refuse_more(address, part, limits.bytes);
  if (written.error == 0 && std::fflush(file.get()) != 0) written.error = errno;
  if (written.error != 0) throw_file_error(part, written.error);
  return result;
}

}  // namespace

void download(const std::string& address, const fs::path& part, const DownloadLimits& limits,
              const DownloadProgress& progress) {
  if (!limits.plain_http && !address.starts_with("https:") && !address.starts_with("file:"))
    throw UserError("cannot download " + address + ": only the MD5 of the file is known",
                    "use an address with https:// for --from");
  const std::uint64_t before = fs::exists(part) ? fs::file_size(part) : 0;
  std::string text;
  CURLcode result = try_once(address, part, before, limits, progress, text);
  const bool cannot_continue = result == CURLE_RANGE_ERROR || result == CURLE_HTTP_RETURNED_ERROR;
  if (before > 0 && cannot_continue) result = try_once(address, part, 0, limits, progress, text);
  if (result == CURLE_OK) return;
  throw UserError("cannot download " + address + ": " + text,
                  "the downloaded part is kept in " + part.string() + "; the same command continues");
}

}  // namespace trainyard::tools
