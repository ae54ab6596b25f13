// Any bytes as a text file, plain or gzip: UTF-8 that can be cut into tokens, or one line that says what is
// wrong.
#include "base/error.h"
#include "models/readers/data_file.h"
#include "models/samples/tokenizer.h"
#include "tests/fuzz/memory_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace trainyard;
  const fuzz::MemoryFile file({bytes, size});
  try {
    const std::string text = models::read_text_file(file.path());
    if (models::first_not_utf8(text)) std::abort();
    for (const std::string& token : models::tokens_of(text))
      if (token.empty() || models::first_not_utf8(token)) std::abort();
  } catch (const UserError&) {
  }
  return 0;
}
