// The records and checkpoints that a fake rank writes: of a training that takes no time, whose loss hangs on
// all epochs before where the run keeps checkpoints.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "experiments/protocol/launch.h"
#include "experiments/protocol/record.h"

namespace trainyard::fake {

[[noreturn]] void wait_for_ever();
[[noreturn]] void hang(const std::filesystem::path& folder, int rank);  // and says so in the folder, here:
std::filesystem::path hanging_file(const std::filesystem::path& folder, int rank);

// Its spool. Told "kill-after-N" or "hang-after-N", the process ends itself, or waits for ever, after so many
// records of the first attempt.
class Records : public experiments::RecordWriter {
 public:
  Records(const experiments::Launch& launch, int rank, const std::string& what);
  void append(const std::string& type, const nlohmann::ordered_json& body);

 private:
  void end_if_last() const;
  std::filesystem::path folder_;
  int rank_;
  bool hangs_;
  int last_ = -1;  // for ever
};

// Where a rank stands in the mesh of its run.
struct Place {
  std::int64_t replica = 0, stage = 0, stages = 1;
  bool last() const { return stage == stages - 1; }  // it alone knows losses
};
Place place_of(const experiments::Launch& launch, int rank);

void write_start(Records& records, const Place& place, int world_size);
// The epochs that the launch asks for, and the test.
void write_training(Records& records, const experiments::Launch& launch, const Place& place);
void write_end(Records& records);

}  // namespace trainyard::fake
