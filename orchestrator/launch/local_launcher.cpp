// Ranks as processes of this host. One store serves all runs; a foreign program does not keep its keys apart
// from those of other runs, so it has a store of its own.
#include <nlohmann/json.hpp>

#include "orchestrator/launch/launcher.h"
#include "orchestrator/rank/leftovers.h"
#include "orchestrator/rank/store.h"
#include "orchestrator/rank/torchrun.h"

namespace trainyard::orchestrator {

namespace {

// With the start times, a successor can tell these processes from later ones of the same pids.
nlohmann::ordered_json marks_of(const std::vector<int>& pids) {
  nlohmann::ordered_json start_ticks = nlohmann::ordered_json::array();
  for (const int pid : pids) {
    const auto mark = mark_of(pid);
    start_ticks.push_back(mark ? mark->start_ticks : 0);  // 0: it is gone already
  }
  return {{"pids", pids}, {"start_ticks", std::move(start_ticks)}};
}

class LocalGang : public Gang {
 public:
  explicit LocalGang(std::optional<StoreProcess> store) : own_store_(std::move(store)) {}

  void start(const GangCommand& gang, const StoreAddress& store) {
    const auto ranks = static_cast<int>(gang.ranks.size());
    std::vector<int> pids;
    for (int rank = 0; rank < ranks; ++rank) {
      RankCommand command = gang.ranks[static_cast<std::size_t>(rank)];
      command.environment.merge(torchrun_environment(gang, {rank, ranks, rank, ranks}, store));
      ranks_.push_back({start_process(command), std::nullopt});
      pids.push_back(ranks_.back().process->pid());
    }
    marks_ = marks_of(pids);
  }

  std::optional<ExitStatus> poll(int number) override {
    Rank& rank = ranks_.at(static_cast<std::size_t>(number));
    if (!rank.ended) rank.ended = rank.process->poll();
    return rank.ended;
  }

  void signal(int number) override {
    for (Rank& rank : ranks_)
      if (!rank.ended) rank.process->signal(number);
  }

  std::optional<GangEnd> end() override {
    for (const Rank& rank : ranks_)
      if (!rank.ended) return std::nullopt;
    return GangEnd{};
  }

  void add_end_fds(std::vector<int>& fds) const override {
    for (const Rank& rank : ranks_)
      if (!rank.ended && rank.process->end_fd() >= 0) fds.push_back(rank.process->end_fd());
  }

  nlohmann::ordered_json marks() const override { return marks_; }

 private:
  struct Rank {
    std::unique_ptr<RankProcess> process;
    std::optional<ExitStatus> ended;
  };
  std::optional<StoreProcess> own_store_;  // outlives the ranks
  std::vector<Rank> ranks_;
  nlohmann::ordered_json marks_;
};

class LocalLauncher : public Launcher {
 public:
  LocalLauncher(const Programs& programs, const Yard& yard)
      : program_(programs.store), store_(programs.store, yard.root() / "store.log") {}

  // A single rank needs no store; a foreign one that wants one all the same makes it itself, on a free port.
  std::unique_ptr<Gang> launch(const GangCommand& command) override {
    const bool alone = command.ranks.size() == 1;
    std::optional<StoreProcess> own;
    if (!alone && command.foreign) own.emplace(program_, command.directory / "store.log");
    const StoreAddress address = alone             ? StoreAddress{"127.0.0.1", "0"}
                                 : own.has_value() ? own->address()
                                                   : store_.address();
    auto gang = std::make_unique<LocalGang>(std::move(own));
    gang->start(command, address);
    return gang;
  }

 private:
  std::filesystem::path program_;
  StoreProcess store_;
};

}  // namespace

std::unique_ptr<Launcher> local_launcher(const Programs& programs, const Yard& yard) {
  return std::make_unique<LocalLauncher>(programs, yard);
}

}  // namespace trainyard::orchestrator
