// Reads any bytes as a file in the binary format of CIFAR-10.
#include "base/error.h"
#include "models/readers/image_readers.h"
#include "tests/fuzz/memory_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace trainyard;
  const fuzz::MemoryFile file({bytes, size});
  models::Images images;
  try {
    const auto count = models::read_cifar10_file(file.path(), &images, nullptr);
    if (count < 1 || images.labels.size() != static_cast<std::size_t>(count)) std::abort();
    if (images.pixels.size() != images.labels.size() * 3072) std::abort();
  } catch (const UserError&) {
  }
  return 0;
}
