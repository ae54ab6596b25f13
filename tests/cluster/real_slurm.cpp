#include "tests/cluster/real_slurm.h"

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <random>
#include <stdexcept>

#include <doctest/doctest.h>
#include <linux/magic.h>
#include <netinet/in.h>
#include <pwd.h>
#include <sys/socket.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/files.h"
#include "base/host.h"

namespace trainyard::cluster {

namespace fs = std::filesystem;

namespace {

bool takes(int fd, int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  return ::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
}

// Distinct free ports. They are below the ephemeral ports of Linux, so no other process gets one by chance.
std::vector<int> free_ports(std::size_t count) {
  std::random_device random;
  std::uniform_int_distribution<int> any(10'000, 30'000);
  std::vector<int> ports, held;
  while (ports.size() < count) {
    held.push_back(::socket(AF_INET, SOCK_STREAM, 0));
    const int port = any(random);
    if (takes(held.back(), port)) ports.push_back(port);
  }
  for (const int fd : held) ::close(fd);
  return ports;
}

fs::path program(const std::string& name) {
  for (const char* folder : {"/usr/sbin", "/usr/bin", "/usr/local/sbin", "/usr/local/bin", "/sbin", "/bin"})
    if (fs::exists(fs::path(folder) / name)) return fs::path(folder) / name;
  return "";
}

constexpr const char* configuration = R"(ClusterName=trainyard
SlurmctldHost=localhost
SlurmctldPort=@PORT0@
SlurmUser=@USER@
SlurmdUser=@USER@
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket=@FOLDER@/munge/socket
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
MpiDefault=none
ReturnToService=2
SlurmdParameters=config_overrides
StateSaveLocation=@FOLDER@/state
SlurmdSpoolDir=@FOLDER@/spool-%n
SlurmctldPidFile=@FOLDER@/controller.pid
SlurmdPidFile=@FOLDER@/%n.pid
SlurmctldLogFile=@FOLDER@/controller.log
SlurmdLogFile=@FOLDER@/%n.log
SchedulerParameters=sched_min_interval=10000,batch_sched_delay=0,sched_interval=1,bf_interval=1
KillWait=2
MessageTimeout=30
TCPTimeout=10
InactiveLimit=0
NodeName=n1 NodeHostname=localhost NodeAddr=127.0.0.1 Port=@PORT1@ CPUs=2
NodeName=n2 NodeHostname=localhost NodeAddr=127.0.0.1 Port=@PORT2@ CPUs=2
PartitionName=main Nodes=n1,n2 Default=YES MaxTime=UNLIMITED State=UP OverSubscribe=NO
)";

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  for (auto at = text.find(what); at != std::string::npos; at = text.find(what))
    text.replace(at, what.size(), by);
  return text;
}

}  // namespace

RealSlurm::RealSlurm() {
  fs::permissions(folder_.path(), fs::perms(0755));  // munged requires a folder that others cannot write
  fs::create_directories(folder_.path() / "munge");
  fs::create_directories(folder_.path() / "state");
  for (const char* node : {"n1", "n2"})
    fs::create_directories(folder_.path() / (std::string("spool-") + node));
  std::ofstream key(folder_.path() / "munge/key", std::ios::binary);
  for (int i = 0; i < 128; ++i) key << static_cast<char>(std::random_device()());
  key.close();
  fs::permissions(folder_.path() / "munge/key", fs::perms(0600));
  write_configuration();
  ::setenv("SLURM_CONF", (folder_.path() / "slurm.conf").c_str(), 1);
  const std::string munge = (folder_.path() / "munge").string();
  munged_ = daemon({"munged", "--foreground", "--num-threads=2", "--key-file=" + munge + "/key",
                    "--socket=" + munge + "/socket", "--pid-file=" + munge + "/pid",
                    "--log-file=" + munge + "/log", "--seed-file=" + munge + "/seed"},
                   "munged");
  if (!e2e::comes_true([&] { return fs::exists(munge + "/socket"); }))
    throw std::runtime_error("munged: " + whole_file(folder_.path() / "munged.out"));
  start_controller();
  for (const char* node : {"n1", "n2"}) nodes_.push_back(daemon({"slurmd", "-D", "-N", node}, node));
  if (!e2e::comes_true([&] { return client({"sinfo", "-h", "-N", "-o", "%T"}) == "idle\nidle\n"; }))
    throw std::runtime_error("Slurm does not start: " + client({"sinfo", "-N", "-l"}) +
                             whole_file(folder_.path() / "controller.out"));
}

RealSlurm::~RealSlurm() {
  try {
    client({"scancel", "--user=" + std::to_string(::getuid())});
    becomes_empty();
  } catch (const std::exception&) {  // the processes left are killed below
  }
  nodes_.clear();
  controller_.reset();
  end_leftovers();
  munged_.reset();
  while (::waitpid(-1, nullptr, WNOHANG) > 0) {
  }
}

void RealSlurm::write_configuration() {
  std::string text = configuration;
  const auto ports = free_ports(3);
  for (std::size_t i = 0; i < ports.size(); ++i)
    text = replaced(text, "@PORT" + std::to_string(i) + "@", std::to_string(ports[i]));
  text = replaced(text, "@FOLDER@", folder_.path().string());
  text = replaced(text, "@USER@", ::getpwuid(::getuid())->pw_name);
  folder_.write("slurm.conf", text);
}

std::unique_ptr<orchestrator::RankProcess> RealSlurm::daemon(const std::vector<std::string>& argv,
                                                             const std::string& name) {
  orchestrator::RankCommand command{
      .argv = argv, .environment = {}, .cores = {}, .log = folder_.path() / (name + ".out")};
  command.argv.front() = program(argv.front()).string();
  return orchestrator::start_process(command);
}

void RealSlurm::stop_controller() {
  controller_->signal(SIGTERM);  // it saves its state
  e2e::comes_true([&] { return controller_->poll().has_value(); });
  controller_.reset();
}

void RealSlurm::start_controller() {
  controller_ = daemon({"slurmctld", "-D"}, "controller");
}

std::string RealSlurm::client(const std::vector<std::string>& arguments) const {
  std::vector<std::string> argv = arguments;
  argv.front() = program(argv.front()).string();
  const auto answer = orchestrator::ClientCommand(argv).wait(std::chrono::minutes(1));
  return answer ? answer->text : "no answer";
}

bool RealSlurm::becomes_empty() const {
  return e2e::comes_true([&] { return client({"squeue", "-h"}).empty(); });
}

// Kills slurmd's helpers and the processes of jobs. All of them have inherited SLURM_CONF.
void RealSlurm::end_leftovers() const {
  const std::string wanted = "SLURM_CONF=" + folder_.path().string();
  for (const int pid : all_processes())
    if (pid != ::getpid() && environment_of(pid).find(wanted) != std::string::npos) ::kill(pid, SIGKILL);
}

bool installed(const std::vector<std::string>& programs) {
  std::string missing;
  for (const auto& name : programs)
    if (program(name).empty()) missing += " " + name;
  if (missing.empty()) return true;
  if (std::getenv("CI") != nullptr)
    FAIL_CHECK("not installed:" << missing);
  else
    MESSAGE("skipped: not installed:" << missing);
  return false;
}

// Whether control groups are mounted. slurmd 22.05 does not start without them, for example in a chroot.
bool has_control_groups() {
  struct statfs system {};
  constexpr decltype(system.f_type) no_mount = SYSFS_MAGIC;  // the file system of the empty mount point
  return ::statfs("/sys/fs/cgroup", &system) == 0 && system.f_type != no_mount;
}

RealSlurm* slurm() {
  if (!has_control_groups()) {
    MESSAGE("skipped: slurmd does not start if nothing is mounted on /sys/fs/cgroup");
    return nullptr;
  }
  if (!installed({"munged", "slurmctld", "slurmd", "sbatch", "srun", "squeue", "scancel"})) return nullptr;
  static RealSlurm started;
  return &started;
}

}  // namespace trainyard::cluster
