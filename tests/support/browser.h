// A real Chromium without a window, for tests of the page: spoken to over two pipes in the DevTools protocol.
// Gone with its profile when the value goes.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace trainyard::tests {

// Its path; empty where no Chromium is installed.
std::string find_chromium();

struct View {
  int width = 1280;
  int height = 900;
  bool dark = false;
  bool scripts = true;  // those of the page
};

class Browser {
 public:
  explicit Browser(const std::string& program);
  ~Browser();
  Browser(const Browser&) = delete;
  Browser& operator=(const Browser&) = delete;

  // Opens a file and waits until it is loaded. What was seen before is forgotten.
  void open(const std::filesystem::path& file, const View& view);
  // The value of a JavaScript expression in the page. Throws where it throws.
  nlohmann::json evaluate(const std::string& expression);
  void press(const std::string& key);  // "ArrowRight"
  std::string screenshot();            // the bytes of a PNG of the view

  // Since the last `open`: console errors, exceptions and violated policies, and addresses asked for beside
  // the file.
  const std::vector<std::string>& errors() const { return errors_; }
  const std::vector<std::string>& requests() const { return requests_; }

 private:
  struct Process;
  nlohmann::json call(const std::string& method, const nlohmann::json& parameters = nlohmann::json::object());
  nlohmann::json next_message();
  void notice(const nlohmann::json& event);

  std::unique_ptr<Process> process_;
  std::string session_;
  int last_id_ = 0;
  bool loaded_ = false;
  std::string received_;  // bytes that are no whole message yet
  std::vector<std::string> errors_;
  std::vector<std::string> requests_;
};

}  // namespace trainyard::tests
