#include "base/sockets/rendezvous_store.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include "base/number.h"
#include "base/sockets/loopback.h"
#include "base/sockets/peer_user.h"

namespace trainyard {

namespace {

enum class Query : std::uint8_t {
  validate,
  set,
  compare_set,
  get,
  add,
  check,
  wait,
  number_of_keys,
  delete_key,
  append,
  multi_get,
  multi_set,
  cancel_wait,
  ping,
  queue_push,
  queue_pop,
  queue_size,
  list_keys,
  barrier
};
constexpr std::uint32_t first_number = 0x3C85F7CE;  // that a client sends
constexpr std::uint8_t ready = 0, not_ready = 1, stop_waiting = 0, wait_canceled = 1;
constexpr std::uint64_t longest_key = std::uint64_t{8} << 10, longest_value = std::uint64_t{8} << 20;
constexpr std::uint64_t most_keys = std::uint64_t{128} << 10;
constexpr int longest_poll_ms = 200;
constexpr auto nap_without_descriptors = std::chrono::milliseconds(100);

template <typename Number>
void put(std::string& out, Number number) {
  std::array<char, sizeof number> bytes{};
  std::memcpy(bytes.data(), &number, sizeof number);
  out.append(bytes.data(), bytes.size());
}

void put_text(std::string& out, const std::string& text) {
  put<std::uint64_t>(out, text.size());
  out += text;
}

}  // namespace

// A request at the begin of the bytes that have arrived. `is_whole` is false if its end has not arrived, and `is_wrong` is true
// if it exceeds a limit.
class RendezvousStore::Request {
 public:
  explicit Request(std::string_view bytes) : rest_(bytes) {}

  template <typename Number>
  Number number() {
    Number number{};
    if (const std::string_view bytes = take(sizeof number); is_whole)
      std::memcpy(&number, bytes.data(), sizeof number);
    return number;
  }
  std::string key() { return text(longest_key); }
  std::string value() { return text(longest_value); }
  std::vector<std::string> keys(bool with_values = false) {
    const auto count = limited(number<std::uint64_t>(), most_keys);
    std::vector<std::string> texts;
    for (std::uint64_t i = 0; i < count && is_whole; ++i) {
      texts.push_back(key());
      if (with_values) texts.push_back(value());
    }
    return texts;
  }
  std::string_view rest() const { return rest_; }

  bool is_whole = true, is_wrong = false;

 private:
  std::string_view take(std::uint64_t size) {
    is_whole = is_whole && size <= rest_.size();
    if (!is_whole) return {};
    const std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }
  std::uint64_t limited(std::uint64_t size, std::uint64_t most) {
    is_wrong = is_wrong || size > most;
    return is_wrong ? 0 : size;
  }
  std::string text(std::uint64_t longest) {
    const auto size = number<std::uint64_t>();
    return std::string(take(limited(size, longest)));
  }

  std::string_view rest_;
};

RendezvousStore::RendezvousStore() {
  require_known_users();
  allow_many_connections();
  listening_ = listen_on_loopback(port_);
  ::fcntl(listening_.get(), F_SETFL, O_NONBLOCK);
}

void RendezvousStore::serve(const std::function<bool()>& goes_on) {
  while (goes_on()) {
    std::vector<pollfd> polled{{listening_.get(), POLLIN, 0}};
    for (const Client& client : clients_)
      polled.push_back(
          {client.connection.get(), static_cast<short>(client.out.empty() ? POLLIN : POLLOUT), 0});
    if (::poll(polled.data(), polled.size(), longest_poll_ms) <= 0) continue;
    auto each = polled.begin() + 1;
    for (Client& client : clients_)
      if (((each++)->revents & ~POLLOUT) != 0) receive(client);
    for (Client& client : clients_) {
      const ssize_t sent = client.out.empty() ? 0
                                              : ::send(client.connection.get(), client.out.data(),
                                                       client.out.size(), MSG_NOSIGNAL);
      if (sent > 0) client.out.erase(0, static_cast<std::size_t>(sent));
      if (sent < 0 && errno != EAGAIN) client.is_open = false;
    }
    std::erase_if(clients_, [](const Client& client) { return !client.is_open; });
    if (polled.front().revents != 0) accept_all();
  }
}

void RendezvousStore::accept_all() {
  while (true) {
    FileDescriptor connection(::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!connection) {
      if (errno == EMFILE || errno == ENFILE) std::this_thread::sleep_for(nap_without_descriptors);
      if (errno != ECONNABORTED && errno != EINTR) return;
    } else if (!from_other_user(connection.get())) {
      const int on = 1;
      ::setsockopt(connection.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      clients_.emplace_back().connection = std::move(connection);
    }
  }
}

void RendezvousStore::receive(Client& client) {
  std::array<char, 1 << 16> part{};
  const ssize_t size = ::recv(client.connection.get(), part.data(), part.size(), 0);
  if (size <= 0) {
    client.is_open = size < 0 && (errno == EAGAIN || errno == EINTR);
    return;
  }
  client.in.append(part.data(), static_cast<std::size_t>(size));
  std::string_view rest = client.in;
  while (!rest.empty() && client.is_open) {
    Request request(rest);
    const bool is_right = answer(client, request);
    client.is_open = !request.is_wrong && (is_right || !request.is_whole);
    if (!request.is_whole) break;
    rest = request.rest();
  }
  client.in.erase(0, client.in.size() - rest.size());
}

// False if the request is not whole, or wrong. Then it has changed nothing.
bool RendezvousStore::answer(Client& client, Request& request) {
  std::string& out = client.out;
  const auto query = static_cast<Query>(request.number<std::uint8_t>());
  const auto is_good = [&] { return request.is_whole && !request.is_wrong; };
  if (!client.is_valid) {
    client.is_valid =
        query == Query::validate && request.number<std::uint32_t>() == first_number && is_good();
    return client.is_valid;
  }
  switch (query) {
    case Query::ping: {
      const auto number = request.number<std::uint32_t>();
      if (is_good()) put(out, number);
      return is_good();
    }
    case Query::set:
    case Query::append: {
      const std::string key = request.key(), value = request.value();
      if (is_good()) store(key, query == Query::append ? values_[key] + value : value);
      return is_good();
    }
    case Query::compare_set: {  // a value that is not there counts as an empty one
      const std::string key = request.key(), expected = request.value(), wanted = request.value();
      if (!is_good()) return false;
      const auto found = values_.find(key);
      if (found == values_.end() ? expected.empty() : found->second == expected) store(key, wanted);
      const auto now = values_.find(key);
      put_text(out, now == values_.end() ? expected : now->second);
      return true;
    }
    case Query::add: {
      const std::string key = request.key();
      auto sum = request.number<std::int64_t>();
      if (!is_good()) return false;
      if (const auto found = values_.find(key); found != values_.end()) {
        const auto before = parse_number<std::int64_t>(found->second);
        if (!before) return false;
        sum += *before;
      }
      store(key, std::to_string(sum));
      put(out, sum);
      return true;
    }
    case Query::get:
    case Query::delete_key:
    case Query::queue_size: {
      const std::string key = request.key();
      if (!is_good()) return false;
      if (query == Query::delete_key) put<std::int64_t>(out, static_cast<std::int64_t>(values_.erase(key)));
      if (query == Query::queue_size) put<std::int64_t>(out, static_cast<std::int64_t>(queues_[key].size()));
      if (query == Query::get) put_text(out, values_.contains(key) ? values_.at(key) : "");
      return true;
    }
    case Query::check:
    case Query::wait: {
      std::vector<std::string> keys = request.keys();
      if (!is_good()) return false;
      const bool has_them = has_all(keys);
      if (query == Query::check)
        put(out, has_them ? ready : not_ready);
      else if (has_them)
        put(out, stop_waiting);
      else
        client.awaited = std::move(keys);
      return true;
    }
    case Query::number_of_keys:
      put<std::int64_t>(out, static_cast<std::int64_t>(values_.size()));
      return true;
    case Query::list_keys:
      put<std::int64_t>(out, static_cast<std::int64_t>(values_.size()));
      for (const auto& [key, value] : values_) put_text(out, key);
      return true;
    case Query::multi_get: {
      const std::vector<std::string> keys = request.keys();
      if (!is_good()) return false;
      for (const std::string& key : keys) put_text(out, values_.contains(key) ? values_.at(key) : "");
      return true;
    }
    case Query::multi_set: {
      std::vector<std::string> texts = request.keys(true);
      if (!is_good()) return false;
      for (std::size_t i = 0; i + 1 < texts.size(); i += 2) store(texts[i], std::move(texts[i + 1]));
      return true;
    }
    case Query::cancel_wait:
      client.awaited.clear();
      client.barrier.reset();
      put(out, wait_canceled);
      return true;
    case Query::queue_push: {
      const std::string key = request.key(), value = request.value();
      if (!is_good()) return false;
      queues_[key].push_back(value);
      changed(key, true);
      return true;
    }
    case Query::queue_pop: {
      const std::string key = request.key();
      if (!is_good()) return false;
      auto& queue = queues_[key];
      put<std::int64_t>(out, static_cast<std::int64_t>(queue.size()));
      if (queue.empty()) return true;
      put_text(out, queue.front());
      queue.pop_front();
      return true;
    }
    case Query::barrier: {
      const std::string key = request.key();
      const auto number = request.number<std::int64_t>();
      if (is_good()) meet(client, key, number);
      return is_good();
    }
    default:
      return false;
  }
}

void RendezvousStore::store(const std::string& key, std::string value) {
  values_[key] = std::move(value);
  changed(key);
}

// Ends the waiting for a key that is there now.
void RendezvousStore::changed(const std::string& key, bool wakes_one) {
  for (Client& client : clients_) {
    if (!client.is_open || std::ranges::find(client.awaited, key) == client.awaited.end() ||
        !has_all(client.awaited))
      continue;
    client.awaited.clear();
    put(client.out, stop_waiting);
    if (wakes_one) return;
  }
}

bool RendezvousStore::has(const std::string& key) const {
  const auto queue = queues_.find(key);
  return values_.contains(key) || (queue != queues_.end() && !queue->second.empty());
}

bool RendezvousStore::has_all(const std::vector<std::string>& keys) const {
  return std::ranges::all_of(keys, [&](const std::string& key) { return has(key); });
}

// The client waits at a barrier. It ends once `number` clients wait there.
void RendezvousStore::meet(Client& client, const std::string& key, std::int64_t number) {
  client.barrier = key;
  const auto waits = [&](const Client& each) { return each.is_open && each.barrier == key; };
  if (std::ranges::count_if(clients_, waits) < number) return;
  for (Client& each : clients_)
    if (waits(each)) {
      each.barrier.reset();
      put(each.out, stop_waiting);
    }
}

}  // namespace trainyard
