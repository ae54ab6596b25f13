// Reads any bytes as an archive of reviews, plain tar or gzip.
#include "base/error.h"
#include "models/readers/text_readers.h"
#include "tests/fuzz/memory_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace trainyard;
  const fuzz::MemoryFile file({bytes, size});
  Sha256 hash;
  try {
    const auto parts = models::read_imdb(file.path(), hash);
    if (parts.train.source.size() != parts.train.labels.size()) std::abort();
  } catch (const UserError&) {
  }
  return 0;
}
