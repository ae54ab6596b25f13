// Reads any bytes as a NumPy array. The result has the number of bytes of its shape, or it is a UserError.
#include "base/error.h"
#include "models/readers/image_folder.h"
#include "tests/fuzz/memory_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace trainyard;
  const fuzz::MemoryFile file({bytes, size});
  try {
    const models::ByteArray array = models::read_npy(file.path(), nullptr);
    std::int64_t elements = 1;  // an array without dimensions is a single number
    for (const std::int64_t length : array.shape) elements *= length;
    if (array.bytes.size() != static_cast<std::size_t>(elements)) std::abort();
  } catch (const UserError&) {
  }
  return 0;
}
