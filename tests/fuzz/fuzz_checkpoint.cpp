// Reads any bytes as a checkpoint. After a first byte 's' they get their correct checksum, so that the
// content is tried, too. Checking and reading must agree.
#include "base/error.h"
#include "experiments/protocol/checkpoint.h"
#include "experiments/protocol/crc32c.h"
#include "tests/fuzz/memory_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace trainyard;
  static const fuzz::Folder folder;
  const std::span<const std::uint8_t> given(bytes, size);
  if (size > 0 && given[0] == 's') {
    std::string text(given.begin() + 1, given.end());
    text += experiments::hexadecimal(experiments::crc32c(text));
    fuzz::overwrite(experiments::checkpoint_file(folder.path, 1, 0),
                    {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
  } else {
    fuzz::overwrite(experiments::checkpoint_file(folder.path, 1, 0), given);
  }
  bool sound = true;
  try {
    experiments::check_checkpoint(folder.path, 1, 0);
  } catch (const UserError&) {
    sound = false;
  }
  try {
    const auto content = experiments::read_checkpoint(folder.path, 1, 0);
    if (!sound || content.values.size() >= size) std::abort();
  } catch (const UserError&) {
    if (sound) std::abort();
  }
  return 0;
}
