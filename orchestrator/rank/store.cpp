#include "orchestrator/rank/store.h"

#include <chrono>
#include <fstream>
#include <sstream>
#include <thread>

#include "base/error.h"
#include "base/whole_file.h"

namespace trainyard::orchestrator {

namespace {

constexpr auto patience = std::chrono::seconds(20);

}  // namespace

std::optional<StoreAddress> parse_store_address(const std::string& output) {
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line) && !lines.eof();) {
    std::istringstream words(line);
    StoreAddress address;
    std::string more;
    if (words >> address.host >> address.port && !(words >> more) &&
        address.port.find_first_not_of("0123456789") == std::string::npos)
      return address;
  }
  return std::nullopt;
}

StoreProcess::StoreProcess(std::filesystem::path program, std::filesystem::path log)
    : program_(std::move(program)), log_(std::move(log)) {}

StoreAddress StoreProcess::address() {
  if (!process_ || process_->poll()) start();
  return address_;
}

void StoreProcess::start() {
  process_.reset();
  std::filesystem::remove(log_);  // an address of an earlier store must not be read
  process_ = start_process({.argv = {program_.string()}, .environment = {}, .cores = {}, .log = log_});
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (std::chrono::steady_clock::now() < deadline) {
    if (const auto found = parse_store_address(whole_file(log_))) {
      address_ = *found;
      return;
    }
    if (const auto status = process_->poll()) {
      process_.reset();
      throw UserError("trainyard-store ended before it gave an address (" + to_text(*status) + ")",
                      "see " + log_.string());
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  process_.reset();
  throw UserError("trainyard-store gave no address within 20 s", "see " + log_.string());
}

}  // namespace trainyard::orchestrator
