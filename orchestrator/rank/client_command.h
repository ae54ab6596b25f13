// A program of the cluster's (sbatch, squeue, scancel) that runs beside the sweep: started, asked whether it
// has ended, and then for what it said. Its controller may be slow or away; the sweep must not wait for it.
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "orchestrator/rank/process.h"

namespace trainyard::orchestrator {

struct ClientAnswer {
  ExitStatus status;
  std::string text;  // stdout and stderr, as they came
};

class ClientCommand {
 public:
  // UserError where the program is not there.
  explicit ClientCommand(std::vector<std::string> argv);
  ~ClientCommand();
  ClientCommand(const ClientCommand&) = delete;
  ClientCommand& operator=(const ClientCommand&) = delete;

  std::optional<ClientAnswer> poll();  // nothing while it runs; never blocks
  // Waits; nothing where it takes longer.
  std::optional<ClientAnswer> wait(std::chrono::milliseconds at_most);

 private:
  int fd_;
  std::filesystem::path output_;
  std::unique_ptr<RankProcess> process_;
};

// The lines of a text, without empty ones.
std::vector<std::string> lines_of(const std::string& text);

// The first line that says what is wrong: "sbatch: error: Batch job submission failed: …" without its head.
std::string complaint(const ClientAnswer& answer);

}  // namespace trainyard::orchestrator
