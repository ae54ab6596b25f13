// Damaged record logs. Records before the damage count, and no wrong value is ever read.
// The sweep then ends with the results of an undisturbed one.
#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>

#include <doctest/doctest.h>

#include "db/ingest/ingest.h"
#include "db/ingest/maintenance.h"
#include "experiments/protocol/record.h"
#include "tests/faults/faulty_sweep.h"

using namespace trainyard;
using namespace trainyard::faults;

namespace {

constexpr const char* rank_epochs =
    "SELECT run_key, epoch, rank, train_loss, train_accuracy, validation_loss, validation_accuracy, "
    "train_seconds "
    "FROM epoch_rank";

std::set<std::string> rows_of(const db::Database& database) {
  std::set<std::string> rows;
  for (const auto& row : db::select(database, rank_epochs).rows) rows.insert(nlohmann::json(row).dump());
  return rows;
}

// A finished yard with one record log that a test overwrites.
class Damaged {
 public:
  Damaged() : spool_(sweep_.bench().attempt(1) / experiments::rank_records_name(1)) {
    sound_ = orchestrator::text_of(spool_);
    whole_ = rows_of(replayed());
    REQUIRE(whole_.size() == 6);  // 2 epochs of 3 ranks
  }

  FaultySweep& sweep() { return sweep_; }
  const std::string& sound() const { return sound_; }
  void write(const std::string& bytes) const { std::ofstream(spool_, std::ios::binary) << bytes; }

  db::Database replayed() const {
    const auto file = sweep_.yard() / "again.db";
    for (const char* suffix : {"", "-wal", "-shm"}) std::filesystem::remove(file.string() + suffix);
    auto database = db::Database::open_for_writing(file);
    db::replay(sweep_.yard(), database);
    return database;
  }

  // Replays the yard, checks that each row is in the undisturbed sweep, and returns the number of rows.
  std::size_t sound_rows(const std::string& what) const {
    const auto rows = rows_of(replayed());
    ++tally().tried;
    const bool subset = std::includes(whole_.begin(), whole_.end(), rows.begin(), rows.end());
    if (subset) ++tally().survived;
    CHECK_MESSAGE(subset, what);
    return rows.size();
  }

  // Finishes the sweep from these files, without its database.
  void expect_survived(const std::string& what) {
    for (const char* suffix : {"", "-wal", "-shm"})
      std::filesystem::remove(sweep_.yard() / ("results.db" + std::string(suffix)));
    faults::expect_survived(sweep_, what);
  }

 private:
  FaultySweep sweep_;
  std::filesystem::path spool_;
  std::string sound_;
  std::set<std::string> whole_;
};

}  // namespace

TEST_CASE("a record log that is truncated at any byte keeps all complete records") {
  Damaged damaged;
  std::size_t before = 0;
  for (std::size_t size = 0; size <= damaged.sound().size(); size += static_cast<std::size_t>(stride(29))) {
    damaged.write(damaged.sound().substr(0, size));
    const std::size_t rows = damaged.sound_rows("cut after " + std::to_string(size) + " bytes");
    CHECK(rows >= before);
    before = rows;
  }
  damaged.write(damaged.sound().substr(0, damaged.sound().size() / 2));
  damaged.expect_survived("cut in the middle");
}

TEST_CASE("a flipped bit at any byte is found, and no number is ever read wrong") {
  Damaged damaged;
  const std::size_t bytes = damaged.sound().size();
  for (std::size_t place = 0; place < bytes; place += static_cast<std::size_t>(stride(29))) {
    std::string flipped = damaged.sound();
    flipped[place] = static_cast<char>(flipped[place] ^ (1 << (place % 8)));
    damaged.write(flipped);
    damaged.sound_rows("bit flipped in byte " + std::to_string(place));
  }
  std::string flipped = damaged.sound();
  flipped[bytes / 3] ^= 4;
  damaged.write(flipped);
  damaged.expect_survived("bit flipped");
}

TEST_CASE("records that are repeated, or are of another rank, change nothing") {
  Damaged damaged;
  damaged.write(damaged.sound() + damaged.sound());
  CHECK(damaged.sound_rows("duplicated") == 6);
  const std::string other =
      orchestrator::text_of(damaged.sweep().bench().attempt(1) / experiments::rank_records_name(0));
  std::string interleaved;
  std::istringstream ours(damaged.sound()), theirs(other);
  for (std::string line; std::getline(ours, line);) {
    interleaved += line + "\n" + line + "\n";
    if (std::getline(theirs, line)) interleaved += line + "\n";
  }
  damaged.write(interleaved);
  CHECK(damaged.sound_rows("interleaved") == 6);
  damaged.expect_survived("interleaved");
}
