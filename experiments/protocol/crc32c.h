// CRC-32C (Castagnoli), the checksum of records, journal entries, progress files and checkpoints.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace trainyard::experiments {

// The CRC-32C of `bytes`: e3069283 for "123456789". `before`: CRC-32C of the preceding bytes.
std::uint32_t crc32c(std::string_view bytes, std::uint32_t before = 0);

std::string hexadecimal(std::uint32_t number);  // 8 digits

}  // namespace trainyard::experiments
