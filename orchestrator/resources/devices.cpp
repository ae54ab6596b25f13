#include "orchestrator/resources/devices.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/files.h"
#include "base/host.h"
#include "base/text.h"
#include "experiments/protocol/transport.h"
#include "orchestrator/resources/cpu_topology.h"

namespace trainyard::orchestrator {

namespace fs = std::filesystem;

namespace {

// Folders of a cgroup and of its parents. The tightest limit applies.
std::vector<fs::path> with_parents(const fs::path& mount, const std::string& path) {
  std::vector<fs::path> folders{mount};
  for (const auto& part : fs::path(path).relative_path()) folders.push_back(folders.back() / part);
  return folders;
}

std::optional<double> cgroup_quota() {
  const std::string cgroups = whole_file("/proc/self/cgroup");
  std::optional<double> quota;
  const auto limit = [&](const std::string& text) {
    if (const auto found = cpu_quota(text)) quota = std::min(*found, quota.value_or(*found));
  };
  for (const auto& folder : with_parents("/sys/fs/cgroup", cgroup_path(cgroups).value_or("/")))
    limit(whole_file(folder / "cpu.max"));
  for (const auto& folder : with_parents("/sys/fs/cgroup/cpu", cgroup_path(cgroups, "cpu").value_or("/")))
    limit(whole_file(folder / "cpu.cfs_quota_us") + whole_file(folder / "cpu.cfs_period_us"));
  return quota;
}

// Part `index` of `parts` of the cores. A single core if there are fewer cores than parts.
std::vector<int> part_of(const std::vector<int>& cores, std::size_t index, std::size_t parts) {
  if (cores.size() < parts) return {cores[index % cores.size()]};
  const std::size_t share = cores.size() / parts;
  const auto first = cores.begin() + static_cast<std::ptrdiff_t>(index * share);
  return {first, first + static_cast<std::ptrdiff_t>(share)};
}

// Divides the cores of each GPU among its ranks. If there are more ranks than cores, they share cores.
void divide_cores_of_gpus(std::vector<Device>& placed) {
  std::map<std::string, std::size_t> ranks, before;  // by device: number of ranks, in total and so far
  for (const Device& device : placed) ++ranks[device.name];
  for (Device& device : placed)
    if (!device.gpu.empty() && !device.cores.empty())
      device.cores = part_of(device.cores, before[device.name]++, ranks[device.name]);
}

// A group of cores: neither a GPU nor a slot of a launcher.
bool is_cores(const Device& device) {
  return device.gpu.empty() && !device.cores.empty();
}

std::vector<int> cores_of(const std::vector<Device>& devices) {
  std::vector<int> cores;
  for (const Device& device : devices) cores.insert(cores.end(), device.cores.begin(), device.cores.end());
  return cores;
}

std::vector<Device> group_cores(const std::vector<int>& cores, std::size_t cores_each) {
  std::vector<Device> devices;
  for (auto first = cores.begin(); std::cmp_less_equal(cores_each, cores.end() - first);) {
    const auto end = first + static_cast<std::ptrdiff_t>(cores_each);
    const std::vector<int> own(first, end);
    devices.push_back({"cpu:" + cpu_list_text(own), own});
    first = end;
  }
  return devices;
}

void check_mesh(const experiments::Strategy& strategy, const std::vector<Device>& devices) {
  if (strategy.replicas < 1 || strategy.stages < 1 || strategy.tensor < 1)
    throw InternalError("a mesh without ranks");
  if (devices.empty()) throw InternalError("no device to place ranks on");
  const std::size_t cores = cores_of(devices).size();
  const auto most = max_ranks_per_core * static_cast<std::int64_t>(cores);
  if (strategy.replicas <= (most - strategy.servers) / strategy.stages / strategy.tensor) return;
  throw UserError(fmt::format("strategy \"{}\" has {} replicas of {}{}{}, more ranks than {} can run",
                              strategy.name, strategy.replicas, counted(strategy.stages, "stage"),
                              strategy.tensor > 1 ? fmt::format(" in {} parts", strategy.tensor) : "",
                              strategy.servers > 0 ? " and " + counted(strategy.servers, "server") : "",
                              counted(cores, "core")),
                  fmt::format("use at most {} ranks here", most));
}

Location place_of(const experiments::Experiment& experiment, std::size_t run) {
  return run < experiment.strategy_locations.size() ? experiment.strategy_locations[run]
                                                    : Location{experiment.file.string()};
}

// GPUs of each group of ranks that communicate: the replicas of a part of a stage, the stages of a replica, and the parts of
// a stage of a replica.
std::vector<std::vector<std::string>> gpus_of_groups(const experiments::Strategy& strategy,
                                                     const std::vector<Device>& placed) {
  std::map<std::int64_t, std::vector<std::string>> by_stage, by_replica, by_layers;
  for (std::int64_t rank = 0; rank < strategy.world_size() - strategy.servers; ++rank) {
    const std::int64_t part = rank % strategy.tensor, model = rank % (strategy.stages * strategy.tensor);
    const Device& device = placed[static_cast<std::size_t>(rank)];
    const std::string gpu = device.gpu.empty() ? "" : device.name;
    by_stage[model].push_back(gpu);
    by_replica[(rank - model) + part].push_back(gpu);
    by_layers[rank - part].push_back(gpu);
  }
  std::vector<std::vector<std::string>> groups;
  for (const auto& dimension : {by_stage, by_replica, by_layers})
    for (const auto& [index, gpus] : dimension) groups.push_back(gpus);
  return groups;
}

// An elastic strategy has at most one replica per GPU (orchestrator/plan/membership.h).
experiments::Strategy fitted(experiments::Strategy strategy, const std::vector<Device>& devices) {
  if (strategy.min_replicas && !devices.front().gpu.empty())
    strategy.replicas = std::clamp(std::ssize(devices), *strategy.min_replicas, strategy.replicas);
  return strategy;
}

[[noreturn]] void no_gpu(const std::string& cuda) {
  if (cuda.empty())
    throw UserError("`[machine] accelerator` is \"cuda\", but trainyard-runner was built for the CPU only",
                    "build it with a CUDA LibTorch (-DLibTorch_CUDA=ON), or leave accelerator out");
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  throw UserError("`[machine] accelerator` is \"cuda\", but no GPU is visible" +
                      (visible == nullptr ? "" : " with CUDA_VISIBLE_DEVICES=" + std::string(visible)),
                  "check that nvidia-smi lists a GPU and that its driver supports CUDA " + cuda);
}

}  // namespace

std::vector<int> usable_cores() {
  std::vector<int> allowed = affinity();
  if (allowed.empty()) allowed = {0};  // the system does not say
  std::vector<std::vector<int>> siblings;
  siblings.reserve(allowed.size());
  for (const int cpu : allowed) siblings.push_back(hyper_threads_of(cpu));
  return limited_by(one_per_core(allowed, siblings), cgroup_quota());
}

std::vector<Device> core_devices(const std::vector<int>& cores) {
  return group_cores(cores, 1);
}

std::vector<Device> grouped(const std::vector<Device>& devices, std::size_t cores_each) {
  return std::ranges::all_of(devices, is_cores) ? group_cores(cores_of(devices), cores_each) : devices;
}

std::vector<Device> divide_cores(const std::vector<int>& cores, std::optional<int> wanted) {
  const auto count =
      wanted ? static_cast<std::size_t>(std::max(*wanted, 0)) : std::min<std::size_t>(2, cores.size());
  if (count == 0) throw UserError("`[machine] devices` is 0", "a run needs at least one device");
  if (count > cores.size())
    throw UserError(fmt::format("`[machine] devices` is {}, but this process may use only {}", count,
                                counted(cores.size(), "core")),
                    fmt::format("set devices to at most {}, or \"auto\"", cores.size()));
  std::vector<Device> devices = group_cores(cores, cores.size() / count);
  devices.resize(count);
  return devices;
}

std::vector<Device> devices_for(const experiments::Run& run, const std::vector<Device>& host,
                                std::optional<int> wanted) {
  if (!std::ranges::all_of(host, is_cores)) return host;
  const std::vector<int> cores = cores_of(host);
  if (!run.threads) return divide_cores(cores, wanted);
  if (std::cmp_greater(*run.threads, cores.size()))
    throw InternalError("check_threads accepted a rank with more threads than cores");
  std::vector<Device> devices = group_cores(cores, static_cast<std::size_t>(*run.threads));
  std::int64_t most = run.strategy.world_size();
  if (wanted) most = std::min<std::int64_t>(most, *wanted);
  if (std::cmp_less(most, devices.size())) devices.resize(static_cast<std::size_t>(most));
  return devices;
}

std::size_t distinct_devices(const std::vector<Device>& devices) {
  std::set<std::string> names;
  for (const Device& device : devices) names.insert(device.name);
  return names.size();
}

std::size_t leased_devices(const std::vector<Device>& devices) {
  std::map<std::string, std::size_t> by_name;
  for (const Device& device : devices) by_name[device.name] = is_cores(device) ? device.cores.size() : 1;
  std::size_t sum = 0;
  for (const auto& [name, count] : by_name) sum += count;
  return sum;
}

std::vector<Device> launcher_slots(const experiments::Machine& machine) {
  const int slots = machine.one_at_a_time() ? 1 : machine.jobs;
  Device slot{machine.launcher, {}};
  if (machine.gpus_elsewhere()) slot.gpu = "as the launcher chose";
  return std::vector<Device>(static_cast<std::size_t>(slots), slot);
}

std::vector<Device> place_ranks(const experiments::Strategy& strategy, const std::vector<Device>& devices) {
  check_mesh(strategy, devices);
  const bool own = strategy.world_size() <= static_cast<std::int64_t>(devices.size());
  std::vector<Device> placed;
  for (std::int64_t rank = 0; rank < strategy.world_size(); ++rank) {
    const bool is_server = rank >= strategy.world_size() - strategy.servers;
    std::int64_t place = rank;
    if (!own && strategy.tensor > 1)
      place += rank / std::ssize(devices);
    else if (!own && !is_server)
      place = rank / strategy.stages + rank % strategy.stages;
    placed.push_back(devices[static_cast<std::size_t>(place) % devices.size()]);
  }
  divide_cores_of_gpus(placed);
  return placed;
}

bool widen_to_threads(std::vector<Device>& placed, const std::vector<Device>& host, std::int64_t threads) {
  const auto wide = [&](const Device& device) {
    return is_cores(device) || device.cores.empty() || std::cmp_greater_equal(device.cores.size(), threads);
  };
  if (std::ranges::all_of(placed, wide)) return false;
  std::vector<int> cores = cores_of(host);
  std::ranges::sort(cores);
  cores.erase(std::unique(cores.begin(), cores.end()), cores.end());
  const auto each = std::min(static_cast<std::size_t>(threads), cores.size());
  std::size_t next = 0;
  for (Device& device : placed) {
    device.cores.clear();
    for (std::size_t i = 0; i < each; ++i) device.cores.push_back(cores[next++ % cores.size()]);
  }
  return next > cores.size();
}

std::vector<Problem> device_problems(const experiments::Experiment& experiment,
                                     const std::vector<Device>& devices) {
  std::vector<Problem> problems;
  std::set<std::string> reported;  // one warning per place and text, not one per run
  for (std::size_t i = 0; i < experiment.runs.size(); ++i) {
    const experiments::Run& run = experiment.runs[i];
    const std::vector<Device> own = devices_for(run, devices, experiment.machine.devices);
    if (fitted(run.strategy, own).world_size() <= static_cast<std::int64_t>(own.size())) continue;
    std::string on = counted(own.size(), "device");
    if (run.threads && is_cores(own.front())) on += " of " + counted(own.front().cores.size(), "core");
    const Problem problem{
        place_of(experiment, i),
        fmt::format("strategy \"{}\" has {} on {}: its ranks share devices, which takes longer",
                    run.strategy.name, counted(run.strategy.world_size(), "rank"), on),
        true};
    if (reported.insert(to_text(problem)).second) problems.push_back(problem);
  }
  return problems;
}

void check_threads(const experiments::Experiment& experiment, std::size_t cores) {
  const auto threads_of = [](const experiments::Run& run) { return run.threads.value_or(0); };
  const auto widest = std::ranges::max_element(experiment.runs, {}, threads_of);
  if (widest == experiment.runs.end() || std::cmp_less_equal(threads_of(*widest), cores)) return;
  const auto index = static_cast<std::size_t>(widest - experiment.runs.begin());
  const bool here = experiment.machine.on_this_host();
  throw UserError(
      fmt::format("each thread of a rank needs its own core: threads = {}, but {} {}", threads_of(*widest),
                  here ? "this process may use only" : "`[machine] cpus_per_task` gives each rank",
                  counted(cores, "core")),
      here ? fmt::format("lower threads to at most {}, or train with more cores: another machine, or a wider "
                         "CPU affinity or quota",
                         cores)
           : fmt::format("lower threads to at most {}, or raise cpus_per_task to {}", cores,
                         threads_of(*widest)),
      index < experiment.thread_locations.size() ? experiment.thread_locations[index]
                                                 : place_of(experiment, index));
}

void check_transport(const experiments::Experiment& experiment, const std::vector<Device>& devices,
                     const std::string& nccl) {
  const experiments::NcclSupport support = experiments::nccl_support(nccl);
  for (std::size_t i = 0; i < experiment.runs.size(); ++i) {
    const auto& strategy = experiment.runs[i].strategy;
    if (strategy.foreign()) continue;
    try {
      const auto own = devices_for(experiment.runs[i], devices, experiment.machine.devices);
      const auto fit = fitted(strategy, own);
      for (const auto& gpus : gpus_of_groups(fit, place_ranks(fit, own)))
        experiments::transport_of(experiment.machine.communicator, gpus, support);
    } catch (const UserError& error) {
      throw UserError("strategy \"" + strategy.name + "\": " + error.what(), "", place_of(experiment, i));
    }
  }
}

void check_precision(const experiments::Experiment& experiment, const std::vector<Device>& devices) {
  const bool on_cores =
      std::ranges::all_of(devices, [](const Device& device) { return device.name.starts_with("cpu"); });
  for (std::size_t i = 0; i < experiment.runs.size(); ++i) {
    const experiments::Run& run = experiment.runs[i];
    if (run.precision != "tf32" || run.strategy.foreign() || !on_cores) continue;
    throw UserError("precision \"tf32\" needs a GPU, but runs train on the CPU here",
                    "use \"float32\", \"bfloat16\" or \"float16\"", place_of(experiment, i));
  }
}

std::vector<Device> choose_gpus(const std::vector<Gpu>& gpus, const std::vector<int>& cores,
                                std::optional<int> wanted) {
  const std::size_t count = wanted ? static_cast<std::size_t>(std::max(*wanted, 0)) : gpus.size();
  if (count == 0) throw UserError("`[machine] devices` is 0", "a run needs at least one device");
  if (count > gpus.size())
    throw UserError(fmt::format("`[machine] devices` is {}, but there {} {}", count,
                                gpus.size() == 1 ? "is" : "are", counted(gpus.size(), "GPU")),
                    fmt::format("set devices to at most {}, or accelerator to \"cpu\"", gpus.size()));
  std::vector<Device> devices;
  for (std::size_t d = 0; d < count; ++d)
    devices.push_back(
        {"cuda:" + std::to_string(gpus[d].index), part_of(cores, d, count), gpus[d].name, gpus[d].uuid});
  return devices;
}

std::vector<Device> host_devices(const experiments::Machine& machine, const std::vector<Gpu>& gpus,
                                 const std::string& cuda, const std::vector<int>& cores) {
  if (machine.accelerator == "cuda" && gpus.empty()) no_gpu(cuda);
  const bool on_gpus = machine.accelerator != "cpu" && !gpus.empty();
  if (on_gpus) return choose_gpus(gpus, cores, machine.devices);
  divide_cores(cores, machine.devices);  // refuses more devices than cores
  return core_devices(cores);
}

experiments::Circumstances on_devices(experiments::Circumstances here, const std::vector<Device>& devices) {
  std::set<std::string> models;
  for (const Device& device : devices)
    if (!device.gpu.empty()) models.insert(device.gpu);
  if (models.empty())
    here.nccl = "";  // nothing on a CPU uses it
  else
    here.processor = joined(models);
  return here;
}

}  // namespace trainyard::orchestrator
