#include "tests/orchestrator/support/fake_training.h"

#include <csignal>
#include <fstream>
#include <string_view>
#include <vector>

#include <unistd.h>

#include "experiments/protocol/checkpoint.h"

namespace trainyard::fake {

namespace {

nlohmann::ordered_json metrics(const std::string& phase, double loss, double correct, double weight) {
  return {{{"phase", phase}, {"name", "loss"}, {"sum", loss}, {"weight", weight}},
          {{"phase", phase}, {"name", "correct"}, {"sum", correct}, {"weight", weight}}};
}

// A value that depends on all epochs so far. Checkpoints store it.
class Memory {
 public:
  Memory(const experiments::Launch& launch, const Place& place)
      : launch_(launch), place_(place), keeps_(launch.run.checkpoint == "epoch") {
    if (!launch.resumes) return;
    const auto read = experiments::read_checkpoint(launch.checkpoints, launch.resumes->after_epoch, stage());
    value_ = read.checkpoint.state.at("memory");
  }
  double after(std::int64_t epoch) {
    value_ = value_ / 2 + static_cast<double>(epoch);
    return keeps_ ? value_ : 0;
  }
  void keep(std::int64_t epoch, Records& records) const {
    if (!keeps_ || place_.replica != 0) return;
    const std::string values(1000, 'v');
    experiments::write_checkpoint(launch_.checkpoints,
                                  {launch_.key, launch_.attempt, epoch, stage(), {}, {{"memory", value_}}},
                                  std::vector<std::string_view>{values});
    // Fake ranks do not wait for one another, so another rank may still need the checkpoint of the start.
    const std::int64_t begin = launch_.resumes ? launch_.resumes->after_epoch : 0;
    for (const auto& file : experiments::checkpoint_files(launch_.checkpoints))
      if (file.stage == stage() && file.epoch < epoch - 1 && file.epoch != begin)
        std::filesystem::remove(file.path);
    records.append("checkpoint", {{"epoch", epoch}});
  }

 private:
  int stage() const { return static_cast<int>(place_.stage); }
  const experiments::Launch& launch_;
  Place place_;
  bool keeps_;
  double value_ = 1;
};

}  // namespace

void wait_for_ever() {
  while (true) pause();
}

std::filesystem::path hanging_file(const std::filesystem::path& folder, int rank) {
  return folder / ("hanging-" + std::to_string(rank));
}

void hang(const std::filesystem::path& folder, int rank) {
  std::ofstream(hanging_file(folder, rank)) << getpid() << std::endl;
  wait_for_ever();
}

Records::Records(const experiments::Launch& launch, int rank, const std::string& what)
    : RecordWriter(launch.records / experiments::rank_records_name(rank), launch.key, launch.attempt, rank),
      folder_(launch.records),
      rank_(rank),
      hangs_(what.starts_with("hang")) {
  const std::string limit = "kill-after-";
  if (launch.attempt == 1 && (what.starts_with(limit) || what.starts_with("hang-after-")))
    last_ = std::stoi(what.substr(limit.size()));
  end_if_last();
}

void Records::append(const std::string& type, const nlohmann::ordered_json& body) {
  RecordWriter::append(type, body);
  --last_;
  end_if_last();
}

void Records::end_if_last() const {
  if (last_ == 0 && hangs_) hang(folder_, rank_);
  if (last_ == 0) raise(SIGKILL);
}

Place place_of(const experiments::Launch& launch, int rank) {
  const std::int64_t stages = launch.run.strategy.stages;
  return {rank / stages, rank % stages, stages};
}

void write_start(Records& records, const Place& place, int world_size) {
  records.append("start", {{"versions", {{"trainyard", "0.1.0"}, {"libtorch", "2.13.0"}}},
                           {"device", "cpu:0"},
                           {"host", "here"},
                           {"threads", 1},
                           {"pid", getpid()},
                           {"world_size", world_size},
                           {"replica", place.replica},
                           {"stage", place.stage},
                           {"parameters", 10},
                           {"samples", {{"train", 80}, {"validation", 10}, {"test", 10}}}});
}

void write_training(Records& records, const experiments::Launch& launch, const Place& place) {
  const auto none = nlohmann::ordered_json::array();
  Memory memory(launch, place);
  const std::int64_t done = launch.resumes ? launch.resumes->after_epoch : 0;
  // The replicas of an elastic run together see each sample once, however many there are.
  const bool sees = place.last() && (place.replica == 0 || !launch.run.strategy.min_replicas);
  for (std::int64_t epoch = done + 1; epoch <= launch.run.epochs; ++epoch) {
    auto all = metrics("train", 40 + memory.after(epoch), 60, 80);
    for (const auto& metric : metrics("validation", 5, 8, 10)) all.push_back(metric);
    records.append("epoch", {{"epoch", epoch},
                             {"train_seconds", 0.0015},  // a fake step takes no time
                             {"validation_seconds", 0.00025},
                             {"seconds",
                              {{"data", 0},
                               {"forward", 0.0005},
                               {"backward", 0.001},
                               {"exposed_communication", 0},
                               {"bubble", 0},
                               {"optimizer", 0},
                               {"other", 0}}},
                             {"metrics", sees ? all : none}});
    memory.keep(epoch, records);
  }
  records.append("test", {{"seconds", 0.000125}, {"metrics", sees ? metrics("test", 5, 9, 10) : none}});
}

void write_end(Records& records) {
  records.append("end", {{"status", "finished"}, {"setup_seconds", 0.0005}, {"total_seconds", 0.004}});
}

}  // namespace trainyard::fake
