#include "base/sha256.h"

#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "base/error.h"

namespace trainyard {

struct Sha256::State {
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context{EVP_MD_CTX_new(), &EVP_MD_CTX_free};
};

Sha256::Sha256() : state_(std::make_unique<State>()) {
  // OpenSSL reports both causes with the same error.
  if (!state_->context || EVP_DigestInit_ex(state_->context.get(), EVP_sha256(), nullptr) != 1)
    throw UserError("OpenSSL cannot compute a SHA-256",
                    "memory ran out, or the configuration of OpenSSL lacks this algorithm");
}

Sha256::~Sha256() = default;

void Sha256::update(std::span<const unsigned char> bytes) {
  if (EVP_DigestUpdate(state_->context.get(), bytes.data(), bytes.size()) != 1) {
    throw InternalError("this SHA-256 is already finished");
  }
}

void Sha256::update(std::string_view bytes) {
  update(std::span(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size()));
}

std::string Sha256::hex() {
  std::array<unsigned char, 32> digest{};
  unsigned int size = 0;
  if (EVP_DigestFinal_ex(state_->context.get(), digest.data(), &size) != 1 || size != digest.size()) {
    throw InternalError("this SHA-256 is already finished");
  }
  return fmt::format("{:02x}", fmt::join(digest, ""));
}

std::string sha256_hex(std::string_view bytes) {
  Sha256 hash;
  hash.update(bytes);
  return hash.hex();
}

std::string sha256_hex(std::istream& in) {
  Sha256 hash;
  std::string piece(std::size_t{1} << 20, '\0');
  while (in.read(piece.data(), static_cast<std::streamsize>(piece.size())) || in.gcount() > 0)
    hash.update(std::string_view(piece).substr(0, static_cast<std::size_t>(in.gcount())));
  return hash.hex();
}

std::string sha256_base64(std::string_view bytes) {
  std::array<unsigned char, 32> digest{};
  if (EVP_Digest(bytes.data(), bytes.size(), digest.data(), nullptr, EVP_sha256(), nullptr) != 1)
    throw InternalError("OpenSSL has no SHA-256");
  std::array<unsigned char, 45> text{};  // with a zero at its end
  EVP_EncodeBlock(text.data(), digest.data(), static_cast<int>(digest.size()));
  return {text.begin(), text.end() - 1};
}

std::string hmac_sha256(std::string_view key, std::string_view bytes) {
  std::array<unsigned char, 32> code{};
  unsigned int size = 0;
  const auto* data = reinterpret_cast<const unsigned char*>(bytes.data());
  if (HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), data, bytes.size(), code.data(), &size) ==
          nullptr ||
      size != code.size())
    throw InternalError("OpenSSL has no HMAC-SHA-256");
  return {code.begin(), code.end()};
}

}  // namespace trainyard
