// CRC-32C of eight bytes at a time: with the processor's instruction, or with one table per byte (Kounavis and
// Berry 2005, "slicing by 8"). It must be fast, because each page of the database is checked when it is read,
// and checkpoints of hundreds of megabytes before a run resumes.
#include "experiments/protocol/crc32c.h"

#include <array>
#include <bit>
#include <cstdio>
#include <cstring>

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

#ifdef __x86_64__
// SSE 4.2 has an instruction for this polynomial: eight times as fast as the tables on pages of 4096 bytes.
[[gnu::target("sse4.2")]] std::uint32_t by_instruction(std::string_view bytes, std::uint32_t before) {
  std::uint64_t crc = ~before;
  for (; bytes.size() >= 8; bytes.remove_prefix(8)) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data(), sizeof word);
    crc = __builtin_ia32_crc32di(crc, word);
  }
  auto rest = static_cast<std::uint32_t>(crc);
  for (const char byte : bytes) rest = __builtin_ia32_crc32qi(rest, static_cast<unsigned char>(byte));
  return ~rest;
}

bool has_instruction() {
  static const bool has = __builtin_cpu_supports("sse4.2") != 0;
  return has;
}
#endif

}  // namespace

std::uint32_t crc32c_by_tables(std::string_view bytes, std::uint32_t before) {
  std::uint32_t crc = ~before;
  for (; bytes.size() >= 8; bytes.remove_prefix(8)) crc = after_eight(crc, bytes.data());
  for (const char byte : bytes) crc = after_byte(crc, byte);
  return ~crc;
}

std::uint32_t crc32c(std::string_view bytes, std::uint32_t before) {
#ifdef __x86_64__
  if (has_instruction()) return by_instruction(bytes, before);
#endif
  return crc32c_by_tables(bytes, before);
}

std::string hexadecimal(std::uint32_t number) {
  std::array<char, 9> digits;
  std::snprintf(digits.data(), digits.size(), "%08x", number);
  return digits.data();
}

}  // namespace trainyard::experiments
