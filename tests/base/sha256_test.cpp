#include "base/sha256.h"

#include <doctest/doctest.h>

using trainyard::Sha256;
using trainyard::sha256_hex;

TEST_CASE("the examples of FIPS 180 have the published hashes") {
  CHECK(sha256_hex("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(sha256_hex("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(sha256_hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq") ==
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  CHECK(sha256_hex(std::string(1'000'000, 'a')) ==
        "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST_CASE("a stream has the same hash as its bytes in one piece") {
  Sha256 hash;
  for (int i = 0; i < 1000; ++i) hash.update(std::string(1000, 'a'));
  CHECK(hash.hex() == "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST_CASE("the second example of RFC 4231 has the published HMAC") {
  std::string hex;
  for (const unsigned char byte : trainyard::hmac_sha256("Jefe", "what do ya want for nothing?"))
    hex += "0123456789abcdef"[byte >> 4U], hex += "0123456789abcdef"[byte & 15U];
  CHECK(hex == "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}
