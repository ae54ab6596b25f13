// Decodes any bytes as PNG or JPEG and cuts the middle square.
#include "base/error.h"
#include "models/readers/image_decoder.h"
#include "tests/fuzz/memory_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace trainyard;
  try {
    const models::Picture picture = models::decode_picture({bytes, size}, "picture");
    if (picture.pixels.size() != static_cast<std::size_t>(picture.height * picture.width * 3)) std::abort();
    if (models::middle_square(picture, 8).size() != 8 * 8 * 3) std::abort();
  } catch (const UserError&) {
  }
  return 0;
}
