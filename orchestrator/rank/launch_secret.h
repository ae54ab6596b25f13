// Secret of one launch on several hosts. The task of rank 0 draws it and writes it to a file in the attempt's
// folder that only this user can read. The tasks of other ranks read it there. It is never in a command line, in
// an environment or on the network.
//
// Two tasks prove to each other that they know it (HMAC-SHA-256):
//   gateway  → entrance   32 random bytes G
//   entrance → gateway    32 random bytes E, and the proof of the entrance for G and E
//   gateway  → entrance   the proof of the gateway for G and E
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace trainyard::orchestrator {

inline constexpr std::size_t challenge_size = 32;
inline constexpr std::size_t proof_size = 32;

class LaunchSecret {
 public:
  // A new secret, in a new file. UserError if the file cannot be made, or if others could read it.
  static LaunchSecret make(const std::filesystem::path& attempt_folder);
  // Empty if there is no complete file. UserError if the file is not a plain file of this user only.
  static std::optional<LaunchSecret> read(const std::filesystem::path& attempt_folder);
  static void remove(const std::filesystem::path& attempt_folder);

  std::string gateway_proof(std::string_view gateway, std::string_view entrance) const;
  std::string entrance_proof(std::string_view gateway, std::string_view entrance) const;

 private:
  explicit LaunchSecret(std::string bytes) : bytes_(std::move(bytes)) {}
  std::string bytes_;
};

std::string random_challenge();

// Takes the same time for all texts of one length.
bool same_proof(std::string_view one, std::string_view other);

}  // namespace trainyard::orchestrator
