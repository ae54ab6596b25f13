// SHA-256 of strings and streams, for run keys, data fingerprints and proofs of a secret. A thin wrapper around OpenSSL.
#pragma once

#include <istream>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace trainyard {

class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;
  void update(std::string_view bytes);
  void update(std::span<const unsigned char> bytes);
  std::string hex();  // 64 lower-case digits; no update() after it

 private:
  struct State;
  std::unique_ptr<State> state_;
};

std::string sha256_hex(std::string_view bytes);
std::string sha256_hex(std::istream& in);  // of all that is left in it
std::string sha256_base64(std::string_view bytes);

// HMAC-SHA-256 (RFC 2104), 32 bytes. Only who knows `key` can compute it.
std::string hmac_sha256(std::string_view key, std::string_view bytes);

}  // namespace trainyard
