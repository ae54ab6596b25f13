#include "orchestrator/rank/launch_secret.h"

#include <array>
#include <cerrno>
#include <system_error>

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/fd.h"
#include "base/plain_file.h"
#include "base/sha256.h"

namespace trainyard::orchestrator {

namespace fs = std::filesystem;

namespace {

constexpr const char* secret_name = "store.secret";
constexpr mode_t only_owner = 0600;

// Other users could read the secret.
[[noreturn]] void refuse_rights(const fs::path& file, const std::string& problem) {
  throw UserError(file.string() + ": " + problem, "put `spool` on a file system with owners and permissions");
}

[[noreturn]] void refuse(const fs::path& file, const std::string& failed, int error) {
  throw UserError(file.string() + ": " + failed + ": " + std::generic_category().message(error),
                  "check the permissions of the folder and the space on its disk");
}

void require_private(const fs::path& file, int fd) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) refuse(file, "cannot be examined", errno);
  if ((status.st_mode & (S_IRWXG | S_IRWXO)) != 0)
    refuse_rights(file, "the secret of the launch can be read by other users");
  if (status.st_uid != ::geteuid()) refuse_rights(file, "the secret of the launch belongs to another user");
}

}  // namespace

LaunchSecret LaunchSecret::make(const fs::path& attempt_folder) {
  const fs::path file = attempt_folder / secret_name;
  remove(attempt_folder);  // of an earlier launch of this attempt
  const FileDescriptor fd = FileDescriptor::open(file, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, only_owner);
  if (!fd) refuse(file, "cannot be written", errno);
  require_private(file, fd.get());
  const std::string bytes = random_challenge();
  if (const int error = write_all(fd.get(), bytes); error != 0) refuse(file, "cannot be written", error);
  // A network file system reports a full disk here, and shows the file to other hosts.
  if (::fsync(fd.get()) != 0) refuse(file, "cannot be written", errno);
  return LaunchSecret(bytes);
}

std::optional<LaunchSecret> LaunchSecret::read(const fs::path& attempt_folder) {
  const fs::path file = attempt_folder / secret_name;
  const OpenedFile opened = open_plain(file, O_RDONLY | O_NOFOLLOW);
  if (!opened.fd) {
    if (opened.error == ENOENT || opened.error == ESTALE) return std::nullopt;
    if (opened.error == 0) throw UserError(file.string() + ": " + opened.problem, "remove it");
    refuse(file, "cannot be opened", opened.error);
  }
  require_private(file, opened.fd.get());
  std::array<char, challenge_size + 1> bytes{};
  if (::read(opened.fd.get(), bytes.data(), bytes.size()) != static_cast<ssize_t>(challenge_size))
    return std::nullopt;
  return LaunchSecret(std::string(bytes.data(), challenge_size));
}

void LaunchSecret::remove(const fs::path& attempt_folder) {
  ::unlink((attempt_folder / secret_name).c_str());
}

// Each side has its own text, so that a proof of one side is never one of the other.

std::string LaunchSecret::gateway_proof(std::string_view gateway, std::string_view entrance) const {
  return hmac_sha256(bytes_,
                     std::string("trainyard store gateway") + std::string(gateway) + std::string(entrance));
}

std::string LaunchSecret::entrance_proof(std::string_view gateway, std::string_view entrance) const {
  return hmac_sha256(bytes_,
                     std::string("trainyard store entrance") + std::string(gateway) + std::string(entrance));
}

std::string random_challenge() {
  std::string bytes(challenge_size, '\0');
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
    throw InternalError("the system gives no random bytes");
  return bytes;
}

bool same_proof(std::string_view one, std::string_view other) {
  unsigned difference = one.size() == other.size() ? 0 : 1;
  for (std::size_t i = 0; i < one.size() && i < other.size(); ++i)
    difference |= static_cast<unsigned char>(one[i]) ^ static_cast<unsigned char>(other[i]);
  return difference == 0;
}

}  // namespace trainyard::orchestrator
