#include "models/datasets/content_cache.h"

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <system_error>

#include <unistd.h>

#include "base/sha256.h"

namespace trainyard::models {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t digest_line = 65;  // 64 digits and a newline

std::string variable(const char* name) {
  const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe)
  return value == nullptr ? "" : value;
}

// A new file in `folder` that no other process has; false where it cannot be written whole.
bool write_new(std::string& name, std::string_view content) {
  const int file = mkstemp(name.data());
  if (file < 0) return false;
  std::size_t written = 0;
  while (written < content.size()) {
    const ssize_t some = ::write(file, content.data() + written, content.size() - written);
    if (some <= 0) break;
    written += static_cast<std::size_t>(some);
  }
  return ::close(file) == 0 && written == content.size();
}

}  // namespace

std::optional<std::string> ContentCache::get(const std::string& name) const {
  if (folder_.empty()) return std::nullopt;
  std::ifstream file(folder_ / name, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  if (text.size() < digest_line) return std::nullopt;
  std::string content = text.substr(digest_line);
  if (sha256_hex(content) + '\n' != text.substr(0, digest_line)) return std::nullopt;
  return content;
}

void ContentCache::put(const std::string& name, std::string_view content) const {
  if (folder_.empty()) return;
  std::error_code ignored;
  fs::create_directories(folder_, ignored);
  std::string part = (folder_ / (name + ".XXXXXX")).string();
  std::string text = sha256_hex(content) + '\n';
  text += content;
  if (write_new(part, text)) fs::rename(part, folder_ / name, ignored);
  fs::remove(part, ignored);  // what was renamed is gone already
}

ContentCache user_cache() {
  if (const std::string folder = variable("XDG_CACHE_HOME"); fs::path(folder).is_absolute())
    return ContentCache(fs::path(folder) / "trainyard");
  if (const std::string home = variable("HOME"); fs::path(home).is_absolute())
    return ContentCache(fs::path(home) / ".cache" / "trainyard");
  return ContentCache({});
}

}  // namespace trainyard::models
