// A real headless Chromium for tests of the report page. It is controlled over two pipes with the DevTools
// protocol. Its destructor ends the browser and removes its profile.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tests/support/patience.h"

namespace trainyard::tests {

// The path of the browser. Empty if no Chromium is installed.
std::string find_chromium();

struct View {
  int width = 1280;
  int height = 900;
  bool dark = false;
  bool scripts = true;  // whether scripts of the page run
  bool touch = false;   // a touch screen
  bool print = false;   // the styles of paper
};

class Browser {
 public:
  explicit Browser(const std::string& program);
  ~Browser();
  Browser(const Browser&) = delete;
  Browser& operator=(const Browser&) = delete;

  // Opens a file and waits until it is loaded. Clears `errors` and `requests`.
  void open(const std::filesystem::path& file, const View& view);
  // The value of a JavaScript expression in the page. Throws if the expression throws.
  nlohmann::json evaluate(const std::string& expression);
  // Whether the condition holds now or within the seconds: handlers of events run later than the events.
  bool becomes_true(const std::string& condition, double seconds = patience);
  void press(const std::string& key);  // "ArrowRight"
  // With a finger, which moves `dx` pixels before it leaves. Needs a view with `touch`.
  void tap(double x, double y, double dx = 0);
  std::string screenshot();        // PNG of the view
  std::string whole_screenshot();  // PNG of the whole page, of at most 16,000 pixels height

  // Since the last `open`: console errors, exceptions and policy violations and addresses that were requested
  // besides the file.
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
  std::string received_;  // bytes of an incomplete message
  std::vector<std::string> errors_;
  std::vector<std::string> requests_;
};

}  // namespace trainyard::tests
