// Reads any bytes as each of the files that the orchestrator shares with tasks on other hosts.
// The content is read or ignored. An exception is a finding.
#include "orchestrator/rank/rank_group_files.h"
#include "tests/fuzz/memory_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace trainyard;
  static const fuzz::Folder folder;
  for (const char* name : {"ranks.json", "rank-0.exit", "rendezvous.json", "rank-0.host"})
    fuzz::overwrite(folder.path / name, {bytes, size});
  orchestrator::read_rank_group_file(folder.path);
  orchestrator::read_rank_exit(folder.path, 0);
  orchestrator::read_rendezvous(folder.path);
  orchestrator::read_rank_host(folder.path, 0);
  return 0;
}
