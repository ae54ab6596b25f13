#include "base/sockets/socket_relay.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <future>
#include <list>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

namespace trainyard {

namespace {

using Clock = std::chrono::steady_clock;
constexpr auto answer_patience = std::chrono::seconds(10);
constexpr std::size_t most_callers = 512;
constexpr std::size_t most_openings = 64;
constexpr std::size_t buffer_size = std::size_t{64} << 10;
constexpr int no_descriptors_nap = 100;  // milliseconds

bool would_block() {
  return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
}

void send_at_once(int connection) {
  const int on = 1;
  ::setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  ::setsockopt(connection, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
}

int port_of(int listening) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (::getsockname(listening, reinterpret_cast<sockaddr*>(&address), &size) != 0)
    throw std::system_error(errno, std::generic_category(), "the port of a relay");
  return ntohs(address.ss_family == AF_INET ? reinterpret_cast<sockaddr_in&>(address).sin_port
                                            : reinterpret_cast<sockaddr_in6&>(address).sin6_port);
}

FileDescriptor new_event() {
  FileDescriptor event(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!event) throw std::system_error(errno, std::generic_category(), "eventfd");
  return event;
}

void notify(const FileDescriptor& event) {
  const std::uint64_t one = 1;
  (void)!::write(event.get(), &one, sizeof one);
}

}  // namespace

namespace relay {  // not anonymous, because members of `Loop` have these types

// Bytes on their way in one direction.
class Flow {
 public:
  bool wants_bytes() const { return !ended_ && bytes_.size() < buffer_size; }
  bool has_bytes() const { return !bytes_.empty(); }
  bool over() const { return passed_end_; }

  // Copies what can be copied now. False if the connection is broken.
  bool step(int from, int to) { return receive(from) && send(to); }

 private:
  bool receive(int from) {
    if (!wants_bytes()) return true;
    std::array<char, buffer_size> part;
    const ssize_t size = ::recv(from, part.data(), part.size(), MSG_DONTWAIT);
    if (size < 0) return would_block();
    if (size == 0) ended_ = true;
    bytes_.append(part.data(), static_cast<std::size_t>(size));
    return true;
  }
  bool send(int to) {
    while (!bytes_.empty()) {
      const ssize_t size = ::send(to, bytes_.data(), bytes_.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
      if (size < 0) return would_block();
      bytes_.erase(0, static_cast<std::size_t>(size));
    }
    if (ended_ && !passed_end_) ::shutdown(to, SHUT_WR);
    passed_end_ = ended_;
    return true;
  }

  std::string bytes_;
  bool ended_ = false, passed_end_ = false;
};

// A connection that was greeted and has not answered in full.
struct Caller {
  FileDescriptor connection;
  std::string greeting, answer;
  Clock::time_point deadline;
};

// A connection that has answered, while its far end is being opened.
struct Opening {
  FileDescriptor connection;
  std::future<FileDescriptor> far;
  std::jthread thread;  // uses the connection, so it ends first
};

// An admitted connection.
struct Link {
  FileDescriptor near, far;
  Flow to_far{}, to_near{};

  pollfd polled_near() const { return polled(near.get(), to_far, to_near); }
  pollfd polled_far() const { return polled(far.get(), to_near, to_far); }
  // False if it is over or broken.
  bool step() {
    return to_far.step(near.get(), far.get()) && to_near.step(far.get(), near.get()) &&
           !(to_far.over() && to_near.over());
  }

 private:
  static pollfd polled(int fd, const Flow& out_of, const Flow& into) {
    const auto events =
        static_cast<short>((out_of.wants_bytes() ? POLLIN : 0) | (into.has_bytes() ? POLLOUT : 0));
    return {events == 0 ? -1 : fd, events, 0};
  }
};

}  // namespace relay

class SocketRelay::Loop {
 public:
  Loop(FileDescriptor listening, std::unique_ptr<Door> door)
      : listening_(std::move(listening)), door_(std::move(door)), stop_(new_event()), opened_(new_event()) {
    // The thread must not get the signals that its process waits for.
    sigset_t all, before;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    thread_ = std::thread([this] { run(); });
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
  ~Loop() {
    notify(stop_);
    thread_.join();
  }
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

 private:
  void run() {
    while (!wait()) {
      step_links();
      admit_opened();
      close_silent_callers();
      hear_callers();
      accept_all();
    }
  }

  // Waits for an event. True if the relay must end.
  bool wait() {
    polled_.assign({{stop_.get(), POLLIN, 0},
                    {opened_.get(), POLLIN, 0},
                    {out_of_descriptors_ ? -1 : listening_.get(), POLLIN, 0}});
    for (const relay::Caller& caller : callers_)
      polled_.push_back({missing(caller) == 0 ? -1 : caller.connection.get(), POLLIN, 0});
    for (const relay::Link& link : links_) {
      polled_.push_back(link.polled_near());
      polled_.push_back(link.polled_far());
    }
    ::poll(polled_.data(), polled_.size(), milliseconds_to_wait());
    return (polled_.front().revents & POLLIN) != 0;
  }

  // Those with an event. Their two entries are in the order of the links, after those of the callers.
  void step_links() {
    auto entry = polled_.end() - static_cast<std::ptrdiff_t>(2 * links_.size());
    std::erase_if(links_, [&](relay::Link& link) {
      const bool event = entry[0].revents != 0 || entry[1].revents != 0;
      entry += 2;
      return event && !link.step();
    });
  }

  // Those whose far end is open, or could not be opened.
  void admit_opened() {
    std::uint64_t count = 0;
    (void)!::read(opened_.get(), &count, sizeof count);
    std::erase_if(openings_, [&](relay::Opening& opening) {
      if (opening.far.wait_for(std::chrono::seconds(0)) != std::future_status::ready) return false;
      if (FileDescriptor far = opening.far.get()) {
        opening.thread.join();
        send_at_once(far.get());
        links_.push_back({std::move(opening.connection), std::move(far)});
      }
      return true;
    });
  }

  int milliseconds_to_wait() const {
    if (out_of_descriptors_) return no_descriptors_nap;
    if (callers_.empty()) return -1;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(callers_.front().deadline - Clock::now());
    return static_cast<int>(std::max<std::int64_t>(left.count(), 0));
  }

  // The oldest caller is the first one.
  void close_silent_callers() {
    while (!callers_.empty() && (callers_.front().deadline <= Clock::now() || callers_.size() > most_callers))
      callers_.pop_front();
  }

  void hear_callers() {
    for (auto caller = callers_.begin(); caller != callers_.end();)
      caller = hear(*caller) ? std::next(caller) : callers_.erase(caller);
  }

  std::size_t missing(const relay::Caller& caller) const {
    return door_->answer_size() - caller.answer.size();
  }

  // False if it has not to be heard again: it has answered, or is refused.
  bool hear(relay::Caller& caller) {
    std::array<char, 256> part{};
    if (missing(caller) > 0) {
      const ssize_t size =
          ::recv(caller.connection.get(), part.data(), std::min(missing(caller), part.size()), MSG_DONTWAIT);
      if (size <= 0) return size < 0 && would_block();
      caller.answer.append(part.data(), static_cast<std::size_t>(size));
      if (missing(caller) > 0) return true;
    }
    if (openings_.size() >= most_openings) return true;
    open(caller);
    return false;
  }

  // Without memory for a thread, the caller is refused.
  void open(relay::Caller& caller) try {
    std::promise<FileDescriptor> promise;
    auto far = promise.get_future();
    std::jthread thread([this, connection = caller.connection.get(), greeting = caller.greeting,
                         answer = caller.answer, promise = std::move(promise)]() mutable {
      promise.set_value(door_->open(connection, greeting, answer));
      notify(opened_);
    });
    openings_.push_back({std::move(caller.connection), std::move(far), std::move(thread)});
  } catch (const std::system_error&) {
  }

  void accept_all() {
    out_of_descriptors_ = false;
    for (std::size_t i = 0; i < most_callers; ++i) {
      FileDescriptor connection(::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!connection) {
        out_of_descriptors_ = errno == EMFILE || errno == ENFILE;
        return;
      }
      greet(std::move(connection));
    }
  }

  void greet(FileDescriptor connection) {
    const auto greeting = door_->greeting(connection.get());
    if (!greeting || !send_now(connection.get(), *greeting)) return;
    send_at_once(connection.get());
    callers_.push_back({std::move(connection), *greeting, {}, Clock::now() + answer_patience});
    if (door_->answer_size() == 0 && !hear(callers_.back())) callers_.pop_back();
  }

  FileDescriptor listening_;
  std::unique_ptr<Door> door_;
  FileDescriptor stop_, opened_;
  std::list<relay::Caller> callers_;
  std::list<relay::Opening> openings_;
  std::list<relay::Link> links_;
  std::vector<pollfd> polled_;
  bool out_of_descriptors_ = false;
  std::thread thread_;  // starts last
};

SocketRelay::SocketRelay(FileDescriptor listening, std::unique_ptr<Door> door)
    : port_(port_of(listening.get())), loop_(std::make_unique<Loop>(std::move(listening), std::move(door))) {}

SocketRelay::~SocketRelay() = default;

bool send_now(int connection, const std::string& bytes) {
  return ::send(connection, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL) ==
         static_cast<ssize_t>(bytes.size());
}

}  // namespace trainyard
