// Records and checkpoints of a fake rank, whose training takes no time.
// If the run keeps checkpoints, each loss depends on all epochs before it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "experiments/protocol/launch.h"
#include "experiments/protocol/record.h"

namespace trainyard::fake {

[[noreturn]] void wait_for_ever();
[[noreturn]] void hang(const std::filesystem::path& folder, int rank);  // and creates this file:
std::filesystem::path hanging_file(const std::filesystem::path& folder, int rank);

// The record log. With "kill-after-N" or "hang-after-N" the process kills itself or hangs after N records of
// the first attempt.
class Records : public experiments::RecordWriter {
 public:
  Records(const experiments::Launch& launch, int rank, const std::string& what);
  void append(const std::string& type, const nlohmann::ordered_json& body);

 private:
  void end_if_last() const;
  std::filesystem::path folder_;
  int rank_;
  bool hangs_;
  int last_ = -1;  // no limit
};

// The position of a rank in the mesh of its run.
struct Place {
  std::int64_t replica = 0, stage = 0, stages = 1;
  bool last() const { return stage == stages - 1; }  // only the last stage has losses
};
Place place_of(const experiments::Launch& launch, int rank);

void write_start(Records& records, const Place& place, int world_size);
// The requested epochs and the test.
void write_training(Records& records, const experiments::Launch& launch, const Place& place);
void write_end(Records& records);

}  // namespace trainyard::fake
