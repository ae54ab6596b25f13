// Reads any bytes as the merges of a byte pair encoding, and splits them with their own merges.
// The result has only tokens of the vocabulary, or it is a UserError.
#include <cstdint>
#include <cstdlib>

#include "base/error.h"
#include "base/text.h"
#include "models/samples/byte_pairs.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace trainyard;
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);
  if (!is_utf8(text)) return 0;  // the reader of the file refuses it
  try {
    const models::BytePairs pairs(text, "merges.txt");
    for (const std::int32_t number : pairs.numbers(text))
      if (number < 0 || number >= pairs.size()) std::abort();
  } catch (const UserError&) {
  }
  return 0;
}
