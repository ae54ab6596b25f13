#include "orchestrator/rank/rendezvous.h"

#include <array>
#include <cerrno>
#include <chrono>
#include <regex>
#include <system_error>
#include <thread>

#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <unistd.h>

#include "base/error.h"
#include "base/fd.h"
#include "base/files.h"
#include "base/host.h"

namespace trainyard::orchestrator {

namespace {

constexpr const char* loopback = "127.0.0.1";
constexpr auto patience = std::chrono::seconds(20);  // until the store has printed its address

std::string numeric_address_of(const ifaddrs& interface) {
  const bool usable = (interface.ifa_flags & IFF_UP) != 0 && (interface.ifa_flags & IFF_LOOPBACK) == 0;
  if (!usable || interface.ifa_addr == nullptr) return "";
  if (interface.ifa_addr->sa_family == AF_INET)
    return numeric_address(*interface.ifa_addr, sizeof(sockaddr_in));
  if (interface.ifa_addr->sa_family != AF_INET6) return "";
  const auto* six = reinterpret_cast<const sockaddr_in6*>(interface.ifa_addr);
  return IN6_IS_ADDR_LINKLOCAL(&six->sin6_addr) ? ""
                                                : numeric_address(*interface.ifa_addr, sizeof(sockaddr_in6));
}

}  // namespace

std::string numeric_address(const sockaddr& address, socklen_t size) {
  std::array<char, NI_MAXHOST> text{};
  const int failed = ::getnameinfo(&address, size, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST);
  return failed != 0 ? "" : text.data();
}

std::vector<std::string> addresses_of_interface(const std::string& name) {
  std::vector<std::string> addresses;
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) return addresses;
  for (const ifaddrs* each = all; each != nullptr; each = each->ifa_next)
    if (name.empty() || name == each->ifa_name)
      if (const std::string number = numeric_address_of(*each); !number.empty()) addresses.push_back(number);
  ::freeifaddrs(all);
  return addresses;
}

std::vector<std::string> own_addresses(const std::string& interface) {
  std::vector<std::string> addresses = addresses_of_interface(interface);
  addresses.insert(addresses.begin(), host_name());
  addresses.emplace_back(loopback);
  return addresses;
}

std::optional<StoreAddress> parse_store_address(const std::string& output) {
  static const std::regex form(R"((?:^|\n)(\S+) (\d+)\n)");
  std::smatch found;
  if (!std::regex_search(output, found, form)) return std::nullopt;
  return StoreAddress{found.str(1), found.str(2)};
}

std::filesystem::path make_store_file(const std::filesystem::path& attempt_folder) {
  std::filesystem::path file = attempt_folder / "store";
  ::unlink(file.c_str());  // of an earlier launch of this attempt
  constexpr mode_t only_owner = 0600;
  if (!FileDescriptor::open(file, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, only_owner))
    throw UserError(
        file.string() + ": cannot make the store of the ranks: " + std::generic_category().message(errno),
        "check the permissions of the yard and the space on its disk");
  return file;
}

StoreProcess::StoreProcess(const std::filesystem::path& program, const std::filesystem::path& log) {
  std::filesystem::remove(log);  // an address of an earlier store must not be read
  process_ = start_process({.argv = {program.string()}, .environment = {}, .cores = {}, .log = log});
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (std::chrono::steady_clock::now() < deadline) {
    if (const auto found = parse_store_address(whole_file(log))) {
      address_ = *found;
      return;
    }
    if (const auto status = process_->poll())
      throw UserError("trainyard-store ended before it printed an address (" + to_text(*status) + ")",
                      "see " + log.string());
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  throw UserError("trainyard-store printed no address within 20 s", "see " + log.string());
}

}  // namespace trainyard::orchestrator
