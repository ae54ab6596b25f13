#include "tests/faults/faulty_sweep.h"

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <map>

#include <doctest/doctest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/host.h"
#include "db/ingest/ingest.h"
#include "db/ingest/maintenance.h"
#include "orchestrator/sweep/recovery.h"
#include "orchestrator/yard/journal.h"
#include "tests/support/contains.h"
#include "tests/support/patience.h"
#include "tests/support/result_rows.h"

namespace trainyard::faults {

using namespace orchestrator;

namespace {

experiments::Run small_run(const char* strategy, std::int64_t replicas, bool checkpoints) {
  experiments::Run run = mlp_run(strategy, replicas, 0);
  if (!checkpoints) return run;
  run.epochs = 4;
  run.checkpoint = "epoch";
  return run;
}

template <typename T>
T* shared() {
  return static_cast<T*>(
      ::mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
}

// Whether a process is left that was started with a run file below the folder.
bool any_rank_below(const fs::path& folder) {
  const std::string wanted = "TRAINYARD_RUN=" + folder.string();
  return std::ranges::any_of(all_processes(), [&](int pid) { return contains(environment_of(pid), wanted); });
}

}  // namespace

long stride(long of_many) {
  const char* text = std::getenv("TRAINYARD_FAULTS");
  return text != nullptr && std::string(text) == "all" ? 1 : of_many;
}

Tally& tally() {
  static Tally all;
  static const struct Printer {
    ~Printer() { std::cout << "faults tried " << all.tried << ", survived " << all.survived << std::endl; }
  } printer;
  return all;
}

FaultySweep::FaultySweep(bool checkpoints)
    : bench_({small_run("single", 1, checkpoints), small_run("ddp", 2, checkpoints)}),
      machine_(machine_circumstances(bench_.programs)),
      calls_(shared<long>()),
      synced_(shared<Synced>()) {
  forget();
  run();
  undisturbed_ = results();
}

void FaultySweep::forget() {
  fs::remove_all(yard());
}

int FaultySweep::sweep_in_child() {
  const YardLock lock(bench_.yard, "a sweep with faults");
  auto database = db::open_yard_for_writing(yard());
  const auto entry = run_entry(bench_.experiment);
  append_to_journal(bench_.yard.journal(), entry);
  db::Ingest(database).journal_entry(entry);
  recover(bench_.yard, database, [](const std::string&) {});
  const auto plan = make_plan(bench_.experiment, bench_.devices, machine_, &database);
  const auto launcher = local_launcher(bench_.programs);
  RememberingStatus status;
  const auto result = run_sweep(bench_.experiment, plan, bench_.yard, database, bench_.programs, *launcher,
                                status, bench_.stop, bench_.options);
  if (!result.stopped_by.empty()) return 1;
  return result.failures.empty() && !result.interrupted ? 0 : 3;
}

pid_t FaultySweep::start(Fault fault, long at_call, long clock_shift) {
  synced_->count = 0;
  const pid_t pid = ::fork();
  if (pid != 0) return pid;
  int code = 3;
  arm(fault, at_call, yard().string());
  watch_syncs(synced_);
  shift_clock(clock_shift);
  try {
    code = sweep_in_child();
  } catch (const db::StorageError&) {
    code = 1;
  } catch (const std::system_error&) {
    code = 1;
  } catch (const UserError&) {
    code = 2;
  } catch (const std::exception& error) {
    std::cerr << "a sweep with faults: " << error.what() << std::endl;
  }
  *calls_ = calls();
  ::_exit(code);
}

Ended FaultySweep::wait(pid_t pid) {
  int status = 0;
  ::waitpid(pid, &status, 0);
  return {WIFSIGNALED(status), WIFEXITED(status) ? WEXITSTATUS(status) : -1, *calls_};
}

Ended FaultySweep::run(Fault fault, long at_call, long clock_shift) {
  return wait(start(fault, at_call, clock_shift));
}

namespace {

bool is_log(const fs::path& file) {
  return file.extension() == ".jsonl";
}

void lose_tail(const fs::path& file, long synced, FaultySweep::Lost lost) {
  const auto size = static_cast<long>(fs::file_size(file));
  if (size <= synced) return;
  const long kept = lost == FaultySweep::Lost::half_records ? (synced + size) / 2 : synced;
  fs::resize_file(file, static_cast<std::uintmax_t>(kept));
  if (lost == FaultySweep::Lost::zeroed_records) fs::resize_file(file, static_cast<std::uintmax_t>(size));
}

}  // namespace

void FaultySweep::cut_power(Lost lost) {
  REQUIRE(becomes_true(tests::patience, [&] { return !any_rank_below(yard()); }));
  std::map<fs::path, Synced::Place> places;
  for (int i = 0; i < synced_->count; ++i) places[synced_->places[i].path] = synced_->places[i];
  std::vector<fs::path> all;
  if (fs::exists(yard()))
    for (const auto& entry : fs::recursive_directory_iterator(yard())) all.push_back(entry.path());
  for (const fs::path& path : all) {
    if (fs::is_directory(path) || (path.parent_path() == yard() && !is_log(path))) continue;
    const auto place = places.find(path);
    if (place == places.end() || !place->second.named)
      fs::remove(path);
    else if (is_log(path))
      lose_tail(path, std::max(0L, place->second.size), lost);
  }
  if (lost != Lost::records_and_log) return;
  const fs::path log = yard() / "results.db-wal";
  fs::remove(yard() / "results.db-shm");
  if (fs::exists(log)) lose_tail(log, places.contains(log) ? std::max(0L, places[log].size) : 0, lost);
}

std::vector<std::string> FaultySweep::results() const {
  return tests::result_rows(yard());
}

std::string FaultySweep::difference() const {
  if (!becomes_true(tests::patience, [&] { return !any_rank_below(yard()); })) return "a process is left";
  const auto rows = results();
  for (std::size_t i = 0; i < std::max(rows.size(), undisturbed_.size()); ++i) {
    const std::string expected = i < undisturbed_.size() ? undisturbed_[i] : "nothing";
    const std::string found = i < rows.size() ? rows[i] : "nothing";
    if (expected != found) return std::string("expected ").append(expected).append(", found ").append(found);
  }
  const auto database = db::Database::open_read_only(yard() / "results.db");
  const db::FileCheck check = db::check_files(yard(), &database);
  const auto& other = check.kept.empty() ? check.differences : check.kept;
  return other.empty() ? "" : "the files say something else: " + other.front();
}

void expect_survived(FaultySweep& sweep, const std::string& what) {
  ++tally().tried;
  const Ended successor = sweep.run();
  const std::string wrong =
      successor.code != 0 ? "the successor ended with " + std::to_string(successor.code) : sweep.difference();
  if (wrong.empty()) ++tally().survived;
  CHECK_MESSAGE(wrong.empty(), (what + ": " + wrong));
}

}  // namespace trainyard::faults
