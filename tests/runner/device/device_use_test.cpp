// The energy counter of a GPU, read from a fake library that is loaded at run time.
// And the fields of an epoch record about its devices.
#include "runner/device/device_use.h"

#include <cstdlib>
#include <fstream>

#include <dlfcn.h>

#include "runner/training/rank_records.h"
#include "tests/runner/support/doctest_beside_torch.h"
#include "tests/runner/support/launched_ranks.h"
#include "tests/support/scratch_folder.h"

namespace trainyard::runner::device_use_test {

using namespace testing;
using trainyard::tests::ScratchFolder;

// The counters of the fake library during its lifetime.
class Counters {
 public:
  explicit Counters(const std::string& text) {
    write(text);
    ::setenv("FAKE_NVML_COUNTERS", file().c_str(), 1);
  }
  ~Counters() { ::unsetenv("FAKE_NVML_COUNTERS"); }
  Counters(const Counters&) = delete;
  Counters& operator=(const Counters&) = delete;
  void write(const std::string& text) const { std::ofstream(file()) << text; }

 private:
  std::filesystem::path file() const { return folder_.path() / "counters"; }
  ScratchFolder folder_;
};

std::vector<nlohmann::json> record_epoch(const std::filesystem::path& folder, const DeviceUse& use) {
  const experiments::Launch launch = launch_of(folder, 1, 1);
  const Task& task = find_task("classification");
  RankRecords records(launch, 0);
  records.epoch({1, 1.5, 0, 0.5, {}, {}, use, MetricSums(task), MetricSums(task)});
  return records_of(launch, 0);
}

TEST_CASE("the energy of a GPU is from its own counter, found by its UUID") {
  const Counters counters("GPU-a 1500\nGPU-b 2000250\n");
  const auto first = GpuEnergy::of("GPU-a", FAKE_NVML), second = GpuEnergy::of("GPU-b", FAKE_NVML);
  REQUIRE(first);
  REQUIRE(second);
  CHECK(first->joules().value() == 1.5);
  CHECK(second->joules().value() == 2000.25);
  counters.write("GPU-b 2000500\nGPU-a 1501\n");
  CHECK(first->joules().value() == 1.501);
  CHECK(second->joules().value() == 2000.5);
}

TEST_CASE("a missing library, driver, GPU or counter gives no value, and no error") {
  CHECK_FALSE(GpuEnergy::of("GPU-a", "libno-such-library.so.1"));
  CHECK_FALSE(GpuEnergy::of("GPU-a", "/lib/x86_64-linux-gnu/libc.so.6"));  // another library
  CHECK_FALSE(GpuEnergy::of("GPU-a", FAKE_NVML));                          // the library does not start
  const Counters counters("GPU-old unsupported\n");
  CHECK_FALSE(GpuEnergy::of("GPU-a", FAKE_NVML));
  CHECK_FALSE(GpuEnergy::of("GPU-old", FAKE_NVML));
}

TEST_CASE("the library is loaded by the name under which the driver installs it") {
  const Counters counters("GPU-of-this-test 7000\n");
  void* loaded = ::dlopen(FAKE_NVML, RTLD_NOW);  // a loaded library is found by its own name
  REQUIRE(loaded != nullptr);
  const auto found = GpuEnergy::of("GPU-of-this-test");
  REQUIRE(found);
  CHECK(found->joules().value() == 7);
  ::dlclose(loaded);
}

// A meter after a training of 250 J, if an epoch must take `shortest` seconds to be measured.
DeviceMeter measured(const Counters& counters, double shortest) {
  counters.write("GPU-a 1000\n");
  DeviceMeter meter(at::kCPU, GpuEnergy::of("GPU-a", FAKE_NVML), shortest);
  meter.training_begins();
  counters.write("GPU-a 251000\n");
  meter.training_ends();
  return meter;
}

TEST_CASE("the energy of an epoch is the difference of the counter over its training") {
  const Counters counters("GPU-a 1000\n");
  DeviceMeter meter = measured(counters, 0);
  counters.write("GPU-a 999000\n");  // validation
  CHECK(meter.use().energy_joules.value() == 250);
  CHECK(meter.use().energy_device == "GPU-a");
  meter.training_begins();
  CHECK_FALSE(meter.use().energy_joules);
  counters.write("GPU-a 1000\n");  // the driver was reloaded, so differences are meaningless
  meter.training_ends();
  CHECK_FALSE(meter.use().energy_joules);
  meter.training_begins();
  counters.write("GPU-a unsupported\n");
  meter.training_ends();
  CHECK_FALSE(meter.use().energy_joules);
}

TEST_CASE("an epoch that is short for the counter of the GPU has no energy") {
  const Counters counters("GPU-a 1000\n");
  CHECK_FALSE(measured(counters, 3600).use().energy_joules);
}

TEST_CASE("the record of an epoch has energy, device and memory only if they were measured") {
  const ScratchFolder with, without;
  const auto measured = record_epoch(with.path(), {250.5, "GPU-a", std::int64_t{7} << 30}).at(0);
  CHECK(measured.at("energy_joules") == 250.5);
  CHECK(measured.at("energy_device") == "GPU-a");
  CHECK(measured.at("peak_device_bytes") == std::int64_t{7} << 30);
  const auto nothing = record_epoch(without.path(), DeviceMeter(at::kCPU).use()).at(0);
  for (const char* member : {"energy_joules", "energy_device", "peak_device_bytes"})
    CHECK_FALSE(nothing.contains(member));
}

}  // namespace trainyard::runner::device_use_test
