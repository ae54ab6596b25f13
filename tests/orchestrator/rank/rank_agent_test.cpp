// Two tasks of a job, as trainyard-rank runs them, without a cluster.
#include "orchestrator/rank/rank_agent.h"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/files.h"
#include "base/host.h"
#include "tests/orchestrator/support/sweep_fixture.h"
#include "tests/support/contains.h"
#include "tests/support/local_sockets.h"

using namespace trainyard;
using namespace trainyard::orchestrator;

namespace {

// A job of two ranks that print their environment. The store is a script that prints the address of a socket of
// this test.
RankGroupFile printing_job(const std::filesystem::path& folder, int store_port) {
  const auto store = folder / "fake-store";
  std::ofstream(store) << "#!/bin/sh\necho 127.0.0.1 " << store_port << "\nexec sleep 1000\n";
  std::filesystem::permissions(store, std::filesystem::perms::owner_all);
  RankGroupFile group{
      .launcher = "slurm", .job = "", .store = store, .command = {folder, "key/1", "token", false, {}}};
  for (const char* log : {"rank-0.log", "rank-1.log"})
    group.command.ranks.push_back({.argv = {"/bin/sh", "-c", "env; ls -l store.secret"},
                                   .environment = {},
                                   .cores = {},
                                   .log = folder / log,
                                   .folder = folder});
  return group;
}

pid_t start_task(const std::filesystem::path& folder, int rank) {
  const pid_t pid = ::fork();
  if (pid != 0) return pid;
  const std::string number = std::to_string(rank);
  for (const auto& [name, value] : std::map<std::string, std::string>{{"SLURM_PROCID", number},
                                                                      {"SLURM_STEP_NUM_TASKS", "2"},
                                                                      {"SLURM_LOCALID", "0"},
                                                                      {"SLURM_NODEID", number},
                                                                      {"SLURM_STEP_TASKS_PER_NODE", "1(x2)"}})
    ::setenv(name.c_str(), value.c_str(), 1);
  int code = 99;
  try {
    code = run_rank_task(folder);
  } catch (const std::exception& error) {
    ::fprintf(stderr, "%s\n", error.what());
  }
  ::_exit(code);
}

int code_of(pid_t pid) {
  int status = 0;
  ::waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// The logs of both ranks after such a job.
std::array<std::string, 2> logs_of_job(int store_port, const std::string& interface = "") {
  const TemporaryFolder folder;
  RankGroupFile group = printing_job(folder.path, store_port);
  group.interface = interface;
  write_rank_group_file(group);
  const pid_t second = start_task(folder.path, 1), first = start_task(folder.path, 0);
  CHECK(code_of(second) == 0);
  CHECK(code_of(first) == 0);
  CHECK_FALSE(std::filesystem::exists(folder.path / "store.secret"));
  return {whole_file(folder.path / "rank-0.log"), whole_file(folder.path / "rank-1.log")};
}

}  // namespace

TEST_CASE("rank 0 uses the store of its host, and other ranks use their own end of the way to it") {
  const tests::ListeningSocket store;
  const auto [first, second] = logs_of_job(store.port);
  const std::string port = "MASTER_PORT=" + std::to_string(store.port) + "\n";
  CHECK(contains(first, "MASTER_ADDR=127.0.0.1\n"));
  CHECK(contains(first, port));
  CHECK(contains(second, "MASTER_ADDR=127.0.0.1\n"));
  CHECK_FALSE(contains(second, port));
  for (const std::string& log : {first, second}) {
    CHECK(contains(log, "TRAINYARD_FIRST_HOST=" + host_name() + "\n"));
    CHECK(contains(log, "-rw------- "));  // the secret, in the folder of the attempt
    CHECK_FALSE(contains(log, "SOCKET_IFNAME"));
  }
}

TEST_CASE("the ranks of several hosts get the interface of [machine]") {
  if (addresses_of_interface("eth0").empty()) {
    MESSAGE("skipped: this host has no interface eth0");
    return;
  }
  const tests::ListeningSocket store;
  for (const std::string& log : logs_of_job(store.port, "eth0")) {
    CHECK(contains(log, "GLOO_SOCKET_IFNAME=eth0\n"));
    CHECK(contains(log, "NCCL_SOCKET_IFNAME=eth0\n"));
  }
}
