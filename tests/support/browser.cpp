#include "tests/support/browser.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <stdexcept>

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/host.h"

namespace trainyard::tests {

namespace {

constexpr int patience_milliseconds = static_cast<int>(1000 * patience);

int base64_value(char digit) {
  static const std::string digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  return static_cast<int>(digits.find(digit));
}

std::string from_base64(const std::string& text) {
  std::string bytes;
  unsigned bits = 0;
  int count = 0;
  for (const char digit : text) {
    if (digit == '=') break;
    bits = bits << 6U | static_cast<unsigned>(base64_value(digit));
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes += static_cast<char>(bits >> static_cast<unsigned>(count) & 0xffU);
  }
  return bytes;
}

}  // namespace

std::string find_chromium() {
  for (const char* name : {"chromium-headless-shell", "chromium", "google-chrome"})
    if (const auto program = program_path(name, "/")) return program->string();
  return "";
}

// The browser process. It reads commands from descriptor 3 and writes messages to descriptor 4.
struct Browser::Process {
  pid_t pid = -1;
  int commands = -1;
  int messages = -1;
  std::filesystem::path profile;
  void (*pipe_signal)(int) = std::signal(SIGPIPE,
                                         SIG_DFL);  // a write to a browser that has ended fails, see `call`

  explicit Process(const std::string& program) {
    std::string pattern = (std::filesystem::temp_directory_path() / "trainyard-browser-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no folder for a browser's profile");
    profile = pattern;
    std::array<int, 2> in{};
    std::array<int, 2> out{};
    if (::pipe2(in.data(), O_CLOEXEC) != 0 || ::pipe2(out.data(), O_CLOEXEC) != 0)
      throw std::runtime_error("no pipes for a browser");
    const std::string data = "--user-data-dir=" + pattern;
    // The sandbox does not work for root in a container. The pages are our own.
    std::array<const char*, 9> arguments{
        program.c_str(),           "--headless",        "--no-sandbox",
        "--disable-gpu",           "--hide-scrollbars", "--disable-dev-shm-usage",
        "--remote-debugging-pipe", data.c_str(),        nullptr};
    pid = ::fork();
    if (pid == 0) {
      // Move both ends out of the way first, because they may be 3 or 4.
      const int commands_end = ::fcntl(in[0], F_DUPFD, 10);
      const int messages_end = ::fcntl(out[1], F_DUPFD, 10);
      ::dup2(commands_end, 3);
      ::dup2(messages_end, 4);
      const int quiet = ::open("/dev/null", O_WRONLY);
      ::dup2(quiet, 2);
      ::setpgid(0, 0);
      ::execv(program.c_str(), const_cast<char* const*>(arguments.data()));
      ::_exit(127);
    }
    ::close(in[0]);
    ::close(out[1]);
    commands = in[1];
    messages = out[0];
    if (pid < 0) throw std::runtime_error("cannot start " + program);
    std::signal(SIGPIPE, SIG_IGN);
  }

  ~Process() {
    if (pid > 0) {
      ::kill(-pid, SIGKILL);
      ::kill(pid, SIGKILL);
      ::waitpid(pid, nullptr, 0);
    }
    std::signal(SIGPIPE, pipe_signal);
    ::close(commands);
    ::close(messages);
    std::error_code ignored;
    std::filesystem::remove_all(profile, ignored);
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
};

Browser::Browser(const std::string& program) : process_(std::make_unique<Process>(program)) {
  const std::string target = call("Target.createTarget", {{"url", "about:blank"}}).at("targetId");
  session_ = call("Target.attachToTarget", {{"targetId", target}, {"flatten", true}}).at("sessionId");
  for (const char* domain : {"Page", "Runtime", "Log", "Network"}) call(std::string(domain) + ".enable");
}

Browser::~Browser() = default;

void Browser::open(const std::filesystem::path& file, const View& view) {
  call("Emulation.setDeviceMetricsOverride",
       {{"width", view.width}, {"height", view.height}, {"deviceScaleFactor", 1}, {"mobile", false}});
  call("Emulation.setEmulatedMedia",
       {{"media", view.print ? "print" : ""},
        {"features", {{{"name", "prefers-color-scheme"}, {"value", view.dark ? "dark" : "light"}}}}});
  call("Emulation.setTouchEmulationEnabled", {{"enabled", view.touch}});
  call("Emulation.setScriptExecutionDisabled", {{"value", !view.scripts}});
  call("Page.navigate", {{"url", "about:blank"}});
  while (!loaded_) notice(next_message());
  loaded_ = false;
  errors_.clear();
  requests_.clear();
  const std::string address = "file://" + std::filesystem::absolute(file).string();
  call("Page.navigate", {{"url", address}});
  while (!loaded_) notice(next_message());
  loaded_ = false;
  std::erase(requests_, address);
}

nlohmann::json Browser::evaluate(const std::string& expression) {
  const nlohmann::json answer =
      call("Runtime.evaluate", {{"expression", expression}, {"returnByValue", true}, {"awaitPromise", true}});
  if (answer.contains("exceptionDetails")) throw std::runtime_error(answer["exceptionDetails"].dump());
  return answer.at("result").value("value", nlohmann::json());
}

bool Browser::becomes_true(const std::string& condition, double seconds) {
  const auto start = std::chrono::steady_clock::now();
  for (;;) {
    if (evaluate("!!(" + condition + ")") == true) return true;
    if (std::chrono::steady_clock::now() - start > std::chrono::duration<double>(seconds)) return false;
    evaluate("new Promise(done => setTimeout(done, 20))");
  }
}

void Browser::press(const std::string& key) {
  for (const char* type : {"keyDown", "keyUp"})
    call("Input.dispatchKeyEvent", {{"type", type}, {"key", key}});
}

void Browser::tap(double x, double y, double dx) {
  const auto send = [this](const char* type, const nlohmann::json& points) {
    call("Input.dispatchTouchEvent", {{"type", type}, {"touchPoints", points}});
  };
  send("touchStart", {{{"x", x}, {"y", y}}});
  for (int step = 1; dx != 0 && step <= 10; ++step)
    send("touchMove", {{{"x", x + dx * step / 10}, {"y", y}}});
  send("touchEnd", nlohmann::json::array());
}

std::string Browser::screenshot() {
  return from_base64(call("Page.captureScreenshot", {{"format", "png"}}).at("data"));
}

std::string Browser::whole_screenshot() {
  nlohmann::json clip = call("Page.getLayoutMetrics").at("cssContentSize");
  clip["height"] = std::min(clip.at("height").get<double>(), 16000.0);  // the limit of a drawing in Chromium
  clip["scale"] = 1;
  return from_base64(
      call("Page.captureScreenshot", {{"format", "png"}, {"captureBeyondViewport", true}, {"clip", clip}})
          .at("data"));
}

nlohmann::json Browser::call(const std::string& method, const nlohmann::json& parameters) {
  nlohmann::json message{{"id", ++last_id_}, {"method", method}, {"params", parameters}};
  if (!session_.empty()) message["sessionId"] = session_;
  const std::string text = message.dump();
  // Messages end with a zero byte.
  if (::write(process_->commands, text.c_str(), text.size() + 1) != static_cast<ssize_t>(text.size() + 1))
    throw std::runtime_error("the browser is gone");
  for (;;) {
    const nlohmann::json answer = next_message();
    if (answer.value("id", 0) != last_id_) {
      notice(answer);
      continue;
    }
    if (answer.contains("error")) throw std::runtime_error(method + ": " + answer["error"].dump());
    return answer.at("result");
  }
}

nlohmann::json Browser::next_message() {
  for (;;) {
    if (const std::size_t end = received_.find('\0'); end != std::string::npos) {
      nlohmann::json message = nlohmann::json::parse(received_.substr(0, end));
      received_.erase(0, end + 1);
      return message;
    }
    pollfd waiting{process_->messages, POLLIN, 0};
    if (::poll(&waiting, 1, patience_milliseconds) <= 0)
      throw std::runtime_error("the browser does not answer");
    std::array<char, 65536> buffer{};
    const ssize_t count = ::read(process_->messages, buffer.data(), buffer.size());
    if (count <= 0) throw std::runtime_error("the browser is gone");
    received_.append(buffer.data(), static_cast<std::size_t>(count));
  }
}

void Browser::notice(const nlohmann::json& event) {
  const std::string method = event.value("method", "");
  const nlohmann::json parameters = event.value("params", nlohmann::json::object());
  if (method == "Page.loadEventFired") loaded_ = true;
  if (method == "Runtime.exceptionThrown") errors_.push_back(parameters.dump());
  if (method == "Runtime.consoleAPICalled" && parameters.value("type", "") == "error")
    errors_.push_back(parameters.dump());
  if (method == "Log.entryAdded" && parameters.at("entry").value("level", "") == "error")
    errors_.push_back(parameters.at("entry").value("text", ""));
  if (method == "Network.requestWillBeSent") requests_.push_back(parameters.at("request").value("url", ""));
}

}  // namespace trainyard::tests
