#include "base/sockets/rendezvous_store.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

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

struct Incomplete {};    // the end of a request has not arrived
struct WrongRequest {};  // it exceeds a limit, or is not a request

}  // namespace

// A request at the begin of the bytes that have arrived. Each call reads its next part. It throws `Incomplete` or
// `WrongRequest`.
class RendezvousStore::Request {
 public:
  explicit Request(std::string_view bytes) : rest_(bytes) {}

  template <typename Number>
  Number number() {
    Number number{};
    std::memcpy(&number, take(sizeof number).data(), sizeof number);
    return number;
  }
  std::string key() { return text(longest_key); }
  std::string value() { return text(longest_value); }
  std::vector<std::string> keys(bool with_values = false) {
    std::vector<std::string> texts;
    for (auto left = size_up_to(most_keys); left > 0; --left) {
      texts.push_back(key());
      if (with_values) texts.push_back(value());
    }
    return texts;
  }
  std::string_view rest() const { return rest_; }

 private:
  std::string_view take(std::uint64_t size) {
    if (size > rest_.size()) throw Incomplete();
    const std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }
  std::uint64_t size_up_to(std::uint64_t most) {
    const auto size = number<std::uint64_t>();
    if (size > most) throw WrongRequest();
    return size;
  }
  std::string text(std::uint64_t longest) { return std::string(take(size_up_to(longest))); }

  std::string_view rest_;
};

RendezvousStore::RendezvousStore() {
  require_known_users();
  allow_many_connections();
  listening_ = listen_on_loopback();
  port_ = port_of(listening_.get());
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
  try {
    while (!rest.empty()) {
      Request request(rest);
      answer(client, request);
      rest = request.rest();
    }
  } catch (const Incomplete&) {  // it is read again when more has arrived
  } catch (const WrongRequest&) {
    client.is_open = false;
  }
  client.in.erase(0, client.in.size() - rest.size());
}

// Reads the whole request before it changes anything.
void RendezvousStore::answer(Client& client, Request& request) {
  std::string& out = client.out;
  const auto query = static_cast<Query>(request.number<std::uint8_t>());
  if (!client.is_valid) {
    client.is_valid = query == Query::validate && request.number<std::uint32_t>() == first_number;
    if (!client.is_valid) throw WrongRequest();
    return;
  }
  switch (query) {
    case Query::ping:
      return put(out, request.number<std::uint32_t>());
    case Query::set:
    case Query::append: {
      const std::string key = request.key(), value = request.value();
      return store(key, query == Query::append ? value_or(key, "") + value : value);
    }
    case Query::compare_set: {  // a value that is not there counts as an empty one
      const std::string key = request.key(), expected = request.value(), wanted = request.value();
      if (value_or(key, "") == expected) store(key, wanted);
      return put_text(out, value_or(key, expected));
    }
    case Query::add: {
      const std::string key = request.key();
      const auto step = request.number<std::int64_t>();
      const auto before = parse_number<std::int64_t>(value_or(key, "0"));
      if (!before) throw WrongRequest();
      store(key, std::to_string(*before + step));
      return put(out, *before + step);
    }
    case Query::get:
      return put_text(out, value_or(request.key(), ""));
    case Query::delete_key:
      return put<std::int64_t>(out, static_cast<std::int64_t>(values_.erase(request.key())));
    case Query::queue_size:
      return put<std::int64_t>(out, std::ssize(queues_[request.key()]));
    case Query::check:
      return put(out, has_all(request.keys()) ? ready : not_ready);
    case Query::wait: {
      std::vector<std::string> keys = request.keys();
      if (has_all(keys)) return put(out, stop_waiting);
      client.awaited = std::move(keys);
      return;
    }
    case Query::number_of_keys:
      return put<std::int64_t>(out, std::ssize(values_));
    case Query::list_keys:
      put<std::int64_t>(out, std::ssize(values_));
      for (const auto& [key, value] : values_) put_text(out, key);
      return;
    case Query::multi_get:
      for (const std::string& key : request.keys()) put_text(out, value_or(key, ""));
      return;
    case Query::multi_set: {
      std::vector<std::string> texts = request.keys(true);
      for (std::size_t i = 0; i + 1 < texts.size(); i += 2) store(texts[i], std::move(texts[i + 1]));
      return;
    }
    case Query::cancel_wait:
      client.awaited.clear();
      client.barrier.reset();
      return put(out, wait_canceled);
    case Query::queue_push: {
      const std::string key = request.key(), value = request.value();
      queues_[key].push_back(value);
      return changed(key, true);
    }
    case Query::queue_pop: {
      auto& queue = queues_[request.key()];
      put<std::int64_t>(out, std::ssize(queue));
      if (queue.empty()) return;
      put_text(out, queue.front());
      return queue.pop_front();
    }
    case Query::barrier: {
      const std::string key = request.key();
      return meet(client, key, request.number<std::int64_t>());
    }
    default:
      throw WrongRequest();
  }
}

const std::string& RendezvousStore::value_or(const std::string& key, const std::string& other) const {
  const auto found = values_.find(key);
  return found == values_.end() ? other : found->second;
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

bool RendezvousStore::has_all(const std::vector<std::string>& keys) const {
  return std::ranges::all_of(keys, [&](const std::string& key) {
    const auto queue = queues_.find(key);
    return values_.contains(key) || (queue != queues_.end() && !queue->second.empty());
  });
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
