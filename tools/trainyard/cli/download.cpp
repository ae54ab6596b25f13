#include "tools/trainyard/cli/download.h"

#include <array>
#include <cstdio>
#include <memory>

#include <curl/curl.h>

#include "base/error.h"

namespace trainyard::tools {
namespace {

namespace fs = std::filesystem;

using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;
using Curl = std::unique_ptr<CURL, void (*)(CURL*)>;

constexpr long longest_wait = 60;  // seconds with less than one byte per second

File open_part(const fs::path& part, bool anew) {
  File file(std::fopen(part.c_str(), anew ? "wb" : "ab"), [](std::FILE* open) { return std::fclose(open); });
  if (!file) throw UserError(part.string() + ": cannot be written", "name a writable folder with --data");
  return file;
}

struct Reported {
  const DownloadProgress& progress;
  std::uint64_t before;  // bytes from earlier tries
};

int report(void* client, curl_off_t total, curl_off_t now, curl_off_t /*total_up*/, curl_off_t /*now_up*/) {
  const auto& reported = *static_cast<const Reported*>(client);
  const std::uint64_t whole = total > 0 ? reported.before + static_cast<std::uint64_t>(total) : 0;
  reported.progress(reported.before + static_cast<std::uint64_t>(now), whole);
  return 0;
}

// Try once, from byte `from` on. `text` receives libcurl's message about the result.
CURLcode try_once(const std::string& address, const fs::path& part, std::uint64_t from,
                  const DownloadProgress& progress, std::string& text) {
  const File file = open_part(part, from == 0);
  const Curl curl(curl_easy_init(), &curl_easy_cleanup);
  if (!curl) throw InternalError("libcurl does not start");
  std::array<char, CURL_ERROR_SIZE> said{};
  Reported reported{progress, from};
  curl_easy_setopt(curl.get(), CURLOPT_URL, address.c_str());
  curl_easy_setopt(curl.get(), CURLOPT_WRITEDATA, file.get());
  curl_easy_setopt(curl.get(), CURLOPT_RESUME_FROM_LARGE, static_cast<curl_off_t>(from));
  curl_easy_setopt(curl.get(), CURLOPT_FAILONERROR, 1L);
  curl_easy_setopt(curl.get(), CURLOPT_FOLLOWLOCATION, 1L);
  curl_easy_setopt(curl.get(), CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl.get(), CURLOPT_CONNECTTIMEOUT, longest_wait);
  curl_easy_setopt(curl.get(), CURLOPT_LOW_SPEED_LIMIT, 1L);
  curl_easy_setopt(curl.get(), CURLOPT_LOW_SPEED_TIME, longest_wait);
  curl_easy_setopt(curl.get(), CURLOPT_ERRORBUFFER, said.data());
  curl_easy_setopt(curl.get(), CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(curl.get(), CURLOPT_XFERINFOFUNCTION, &report);
  curl_easy_setopt(curl.get(), CURLOPT_XFERINFODATA, &reported);
  const CURLcode result = curl_easy_perform(curl.get());
  text = said.front() == '\0' ? curl_easy_strerror(result) : said.data();
  return result;
}

}  // namespace

void download(const std::string& address, const fs::path& part, const DownloadProgress& progress) {
  const std::uint64_t before = fs::exists(part) ? fs::file_size(part) : 0;
  std::string text;
  CURLcode result = try_once(address, part, before, progress, text);
  const bool cannot_continue = result == CURLE_RANGE_ERROR || result == CURLE_HTTP_RETURNED_ERROR;
  if (before > 0 && cannot_continue) result = try_once(address, part, 0, progress, text);
  if (result == CURLE_OK) return;
  throw UserError("cannot download " + address + ": " + text,
                  "the downloaded part is kept in " + part.string() + "; the same command continues");
}

}  // namespace trainyard::tools
