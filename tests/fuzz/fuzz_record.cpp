// Reads any bytes as a line of a record log: a record or a problem. A record that is sealed again is the same
// record.
#include <cstdint>
#include <cstdlib>

#include "experiments/protocol/record.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace trainyard::experiments;
  const ParsedLine parsed = parse_line({reinterpret_cast<const char*>(bytes), size});
  if (parsed.record.has_value() != parsed.problem.empty()) std::abort();
  if (!parsed.record) return 0;
  const ParsedLine again = parse_line(sealed_line(nlohmann::ordered_json(parsed.record->body)));
  if (!again.record || again.record->body != parsed.record->body) std::abort();
  return 0;
}
