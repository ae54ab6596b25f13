// Programs and packages that single tests need. `tools/setup --dev` installs them.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

#include <doctest/doctest.h>

namespace trainyard::tests {

// Whether `command` succeeds. If not, the test is skipped with a message. With CI=true it fails.
inline bool is_installed(const std::string& what, const std::string& command) {
  if (std::system((command + " > /dev/null 2>&1 < /dev/null").c_str()) == 0) return true;
  const char* ci = std::getenv("CI");
  const std::string text = what + " is missing: tools/setup --dev installs it";
  if (ci != nullptr && std::string(ci) == "true")
    FAIL_CHECK(text);
  else
    MESSAGE("skipped: " << text);
  return false;
}

// A Python with pandas: that of build/venv in the source folder `source`, or python3. Empty if there is none.
inline std::string python_with_pandas(const std::filesystem::path& source) {
  const std::string ours = (source / "build/venv/bin/python").string();
  const std::string python = std::filesystem::exists(ours) ? ours : "python3";
  return is_installed("pandas", python + " -c 'import pandas'") ? python : "";
}

}  // namespace trainyard::tests
