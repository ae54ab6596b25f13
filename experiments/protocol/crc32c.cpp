// CRC-32C of eight bytes at a time, with one table per byte (Kounavis and Berry 2005, "slicing by 8"). It must be
// fast, because checkpoints of hundreds of megabytes are checked before a run resumes.
#include "experiments/protocol/crc32c.h"

#include <array>
#include <bit>
#include <cstring>

#include <fmt/format.h>

namespace trainyard::experiments {

namespace {

constexpr std::uint32_t polynomial = 0x82f63b78;  // 0x1edc6f41, lowest bit first

using Tables = std::array<std::array<std::uint32_t, 256>, 8>;

constexpr Tables make_tables() {
  Tables tables{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1U) ^ ((crc & 1U) != 0 ? polynomial : 0);
    tables[0][byte] = crc;
  }
  for (std::uint32_t byte = 0; byte < 256; ++byte)
    for (std::size_t i = 1; i < tables.size(); ++i)
      tables[i][byte] = (tables[i - 1][byte] >> 8U) ^ tables[0][tables[i - 1][byte] & 0xffU];
  return tables;
}

constexpr Tables tables = make_tables();
static_assert(std::endian::native == std::endian::little, "eight bytes are read as one number");

std::uint32_t after_byte(std::uint32_t crc, char byte) {
  return (crc >> 8U) ^ tables[0][(crc ^ static_cast<unsigned char>(byte)) & 0xffU];
}

std::uint32_t after_eight(std::uint32_t crc, const char* bytes) {
  std::uint64_t word = 0;
  std::memcpy(&word, bytes, sizeof word);
  word ^= crc;
  std::uint32_t next = 0;
  for (std::size_t i = 0; i < tables.size(); ++i) next ^= tables[7 - i][(word >> (8 * i)) & 0xffU];
  return next;
}

}  // namespace

std::uint32_t crc32c(std::string_view bytes, std::uint32_t before) {
  std::uint32_t crc = ~before;
  for (; bytes.size() >= 8; bytes.remove_prefix(8)) crc = after_eight(crc, bytes.data());
  for (const char byte : bytes) crc = after_byte(crc, byte);
  return ~crc;
}

std::string hexadecimal(std::uint32_t number) {
  return fmt::format("{:08x}", number);
}

}  // namespace trainyard::experiments
