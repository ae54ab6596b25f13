// Small pictures for tests: pixels, and the bytes of PNG and JPEG files.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/readers/image_decoder.h"

namespace trainyard::tests {

// (7y + 13x + 50c + xy div 3) mod 256
models::Picture pattern(std::int64_t height, std::int64_t width);

std::vector<std::uint8_t> png_of(const models::Picture& picture);
std::vector<std::uint8_t> jpeg_of(const models::Picture& picture);

std::string as_text(const std::vector<std::uint8_t>& bytes);

}  // namespace trainyard::tests
