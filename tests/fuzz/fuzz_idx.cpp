// Reads any bytes as a file of images and a file of labels in the IDX format.
// The result has one label per image, or it is a UserError.
#include "base/error.h"
#include "models/readers/image_readers.h"
#include "tests/fuzz/memory_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace trainyard;
  const fuzz::Halves halves = fuzz::halves({bytes, size});
  const fuzz::MemoryFile images_file(halves.first), labels_file(halves.second);
  models::Images images;
  try {
    const auto count = models::read_idx_part({images_file.path(), labels_file.path()},
                                             {.channels = 1, .height = 2, .width = 3}, 10, &images, nullptr);
    if (count < 1 || images.labels.size() != static_cast<std::size_t>(count)) std::abort();
    if (images.pixels.size() != images.labels.size() * 6) std::abort();
  } catch (const UserError&) {
  }
  return 0;
}
