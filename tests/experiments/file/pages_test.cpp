// The documentation pages: their links, and the keys that they list.
#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "experiments/config/machine_keys.h"
#include "experiments/run/keys.h"

using namespace trainyard::experiments;
namespace fs = std::filesystem;

namespace {

// The lines of a page outside code blocks.
std::vector<std::string> prose_of(const fs::path& page) {
  std::ifstream in(page);
  REQUIRE_MESSAGE(in, page.string());
  std::vector<std::string> lines;
  bool code = false;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("```")) code = !code;
    if (!code) lines.push_back(line);
  }
  return lines;
}

// GitHub's anchor for a heading: "A new model" has the anchor "a-new-model".
std::string anchor_of(const std::string& heading) {
  std::string anchor;
  for (const char c : heading.substr(heading.find_first_not_of("# ")))
    if (c == ' ')
      anchor += '-';
    else if (static_cast<unsigned char>(c) >= 128 || std::isalnum(static_cast<unsigned char>(c)) != 0 ||
             c == '-' || c == '_')
      anchor += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return anchor;
}

std::set<std::string> anchors_of(const fs::path& page) {
  std::set<std::string> anchors;
  for (const std::string& line : prose_of(page))
    if (line.starts_with("#")) anchors.insert(anchor_of(line));
  return anchors;
}

// The links of a page to other pages, as in "docs/data.md#splits".
std::vector<std::string> links_of(const fs::path& page) {
  std::vector<std::string> links;
  for (const std::string& line : prose_of(page))
    for (auto at = line.find("]("); at != std::string::npos; at = line.find("](", at + 1)) {
      const std::string link = line.substr(at + 2, line.find(')', at) - at - 2);
      if (link.find("://") == std::string::npos) links.push_back(link);
    }
  return links;
}

std::vector<fs::path> pages() {
  std::vector<fs::path> all{"README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "db/README.md",
                            "bench/README.md"};
  for (const auto& entry : fs::directory_iterator("docs"))
    if (entry.path().extension() == ".md") all.push_back(entry.path());
  return all;
}

}  // namespace

TEST_CASE("each link of a page leads to an existing file and heading") {
  for (const fs::path& page : pages())
    for (const std::string& link : links_of(page)) {
      CAPTURE(page.string() + ": " + link);
      const auto hash = std::min(link.find('#'), link.size());
      const fs::path file = hash == 0 ? page : page.parent_path() / link.substr(0, hash);
      REQUIRE(fs::exists(file));
      if (hash < link.size()) CHECK(anchors_of(file).contains(link.substr(hash + 1)));
    }
}

TEST_CASE("the index of docs/ has each page") {
  const std::vector<std::string> links = links_of("docs/README.md");
  for (const fs::path& page : pages())
    if (page.parent_path() == "docs" && page.filename() != "README.md")
      CHECK_MESSAGE(std::find(links.begin(), links.end(), page.filename()) != links.end(), page.string());
}

TEST_CASE("the page of the experiment file documents every key and every section") {
  std::set<std::string> rows;
  for (const std::string& line : prose_of("docs/experiment-file.md"))
    if (line.starts_with("| `")) rows.insert(line.substr(3, line.find("` |") - 3));
  for (const Key& key : keys()) CHECK_MESSAGE(rows.contains(key.parameter.name), key.parameter.name);
  for (const MachineKey& key : machine_keys()) CHECK_MESSAGE(rows.contains(key.name), key.name);
  for (const char* section : {"name", "data_seed", "[matrix]", "[[include]]", "[[exclude]]", "[defaults]",
                              "[model.NAME]", "[strategy.NAME]", "[dataset.NAME]", "[data]", "[compare]",
                              "[expect.MODEL]", "published", "[machine]"})
    CHECK_MESSAGE(rows.contains(section), section);
}
