// Reads any bytes as a table in CSV. The result has one cell per row and column, or it is a UserError.
#include "base/error.h"
#include "models/readers/csv_file.h"
#include "tests/fuzz/memory_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace trainyard;
  const fuzz::MemoryFile file({bytes, size});
  Sha256 hash;
  try {
    const models::CsvTable table = models::read_csv(file.path(), "train", hash);
    if (table.rows() == 0 || table.cells.size() != table.rows() * table.names.size()) std::abort();
    for (std::size_t i = 1; i < table.rows(); ++i)
      if (table.lines[i] <= table.lines[i - 1]) std::abort();
  } catch (const UserError&) {
  }
  return 0;
}
