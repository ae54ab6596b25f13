// Reads any bytes as a text file, plain or gzip.
// The result is a text that can be split into tokens, or it is a UserError.
#include "base/error.h"
#include "base/text.h"
#include "models/readers/data_file.h"
#include "tests/fuzz/memory_file.h"
#include "tests/models/tokens.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace trainyard;
  const fuzz::MemoryFile file({bytes, size});
  try {
    const std::string text = models::read_text_file(file.path());
    if (first_not_utf8(text)) std::abort();
    for (const std::string& token : tests::tokens_of(text))
      if (token.empty() || first_not_utf8(token)) std::abort();
  } catch (const UserError&) {
  }
  return 0;
}
