// A running sweep's yard: files that an orchestrator and its ranks append to, and a collector that ingests
// them in pieces into a live database.
#pragma once

#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "db/database/database.h"
#include "db/ingest/ingest.h"
#include "experiments/protocol/record.h"
#include "experiments/protocol/seal.h"
#include "tests/db/support/yard.h"
#include "tests/support/scratch_folder.h"

namespace trainyard::db::testing {

inline void append_line(const std::filesystem::path& file, const std::string& text) {
  std::ofstream(file, std::ios::app) << text;
}

// A yard whose journal entries are written and ingested together.
struct LiveYard {
  TemporaryFolder folder;
  Database live = Database::open_for_writing(folder / "results.db");
  Ingest ingest{live};

  void journal(const nlohmann::json& entry) {
    append_line(folder / "journal.jsonl", experiments::sealed(entry.dump()) + "\n");
    ingest.journal_entry(entry);
  }
};

// A running attempt: its record writers, and how many lines of each record log were ingested.
class LiveAttempt {
 public:
  LiveAttempt(LiveYard& yard, const experiments::Run& run, int number, const std::string& created)
      : yard_(yard) {
    auto launch = make_launch(run, number, created);
    launch.records = yard.folder.path() / "runs" / launch.key / ("attempt-" + std::to_string(number));
    std::filesystem::create_directories(launch.records);
    experiments::write_launch(launch);
    yard.ingest.run_file(experiments::to_json(experiments::read_launch(launch.records / "run.json")));
    open(launch.records / experiments::orchestrator_records_name, launch, std::nullopt);
    for (int rank = 0; rank < run.strategy.world_size(); ++rank)
      open(launch.records / experiments::rank_records_name(rank), launch, rank);
  }

  experiments::RecordWriter& orchestrator() { return *logs_[0].writer; }
  experiments::RecordWriter& rank(int rank) { return *logs_[static_cast<std::size_t>(rank) + 1].writer; }
  const std::filesystem::path& file(int rank) { return logs_[static_cast<std::size_t>(rank) + 1].file; }

  // Ingests the new lines of every record log.
  void collect() {
    for (RecordLog& log : logs_) {
      const auto lines = tests::read_lines(log.file);
      for (; log.read < lines.size(); ++log.read) {
        const auto parsed = experiments::parse_line(lines[log.read]);
        if (parsed.record) yard_.ingest.record(*parsed.record);
      }
    }
  }

 private:
  struct RecordLog {
    std::filesystem::path file;
    std::unique_ptr<experiments::RecordWriter> writer;
    std::size_t read = 0;
  };
  void open(const std::filesystem::path& file, const experiments::Launch& launch, std::optional<int> rank) {
    logs_.push_back(
        {file, std::make_unique<experiments::RecordWriter>(file, launch.key, launch.attempt, rank), 0});
  }

  LiveYard& yard_;
  std::vector<RecordLog> logs_;
};

inline nlohmann::ordered_json body(const nlohmann::json& object) {
  return nlohmann::ordered_json::parse(object.dump());
}

inline void epoch(LiveAttempt& attempt, int rank, int number) {
  const std::vector<nlohmann::json> metrics = {
      metric("train", "loss", 100.0 / number, 40), metric("train", "correct", 30, 40),
      metric("validation", "loss", 3.5, 8), metric("validation", "correct", 4, 8)};
  attempt.rank(rank).append("epoch", body(epoch_body(number, 1.0 + number + rank, 0.125, metrics)));
}

inline void end(LiveAttempt& attempt, int rank, const std::string& status, const std::string& error = "") {
  attempt.rank(rank).append(
      "test",
      body({{"seconds", 0.5}, {"metrics", nlohmann::json::array({metric("test", "correct", 9, 10)})}}));
  attempt.rank(rank).append("end", body(end_body(status, 12.5 + rank, error)));
}

}  // namespace trainyard::db::testing
