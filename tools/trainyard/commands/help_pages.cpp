// Help pages of the program and of its commands. The list of commands is in groups, with one line per
// command. Each `VERB --help` ends with examples. Lines are at most 80 columns wide.
#include <algorithm>
#include <memory>
#include <sstream>
#include <string>

#include <CLI/CLI.hpp>

#include "base/named_row.h"
#include "base/text.h"
#include "reports/format/aligned_text.h"
#include "tools/trainyard/commands/commands.h"

namespace trainyard::tools {
namespace {

constexpr std::size_t page_width = 80, option_width = 30;

// Width of the name column in a list of verbs: two spaces, the longest name, three spaces.
constexpr std::size_t name_width() {
  std::size_t longest = 0;
  for (const Verb& verb : verbs) longest = std::max(longest, verb.name.size() - (verb.name.rfind(' ') + 1));
  return longest + 5;
}

// A name and its description. The name column is `indent` wide.
std::string entry(const std::string& name, const std::string& about, std::size_t indent) {
  const std::string spaces(indent, ' ');
  std::string text = "  " + name;
  if (text.size() + 2 > indent)
    text += "\n" + spaces;
  else
    text.resize(indent, ' ');
  std::istringstream lines(about);
  std::string body;
  for (std::string line; std::getline(lines, line);)
    for (const std::string& part : reports::wrapped(line, page_width - indent))
      body += (body.empty() ? "" : "\n" + spaces) + part;
  return text + body + '\n';
}

// Paragraphs wrapped to the page width. Lines that begin with a space are kept as they are.
std::string broken_paragraphs(const std::string& text) {
  std::istringstream lines(text);
  std::string paragraph, result;
  const auto end_paragraph = [&] {
    if (!paragraph.empty()) result += joined(reports::wrapped(paragraph, page_width), {}, "\n") + '\n';
    paragraph.clear();
  };
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty() && line.front() != ' ') {
      paragraph += (paragraph.empty() ? "" : " ") + line;
      continue;
    }
    end_paragraph();
    result += line + '\n';
  }
  end_paragraph();
  return result;
}

// Layout of the help pages. Arguments have no count: CLI's own layout prints "A B(2x)".
class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_option_usage(const CLI::Option* option) const override {
    const bool any_number = option->get_expected_max() >= CLI::detail::expected_max_vector_size;
    const std::string name = make_option_name(option, true) + (any_number ? "..." : "");
    return option->get_required() ? name : "[" + name + "]";
  }
  std::string make_description(const CLI::App* verb) const override {
    return broken_paragraphs(CLI::Formatter::make_description(verb)) + '\n';
  }
  std::string make_footer(const CLI::App* verb) const override {
    return broken_paragraphs(verb->get_footer());
  }
  std::string make_option(const CLI::Option* option, bool is_positional) const override {
    return entry(make_option_name(option, is_positional) + make_option_opts(option), make_option_desc(option),
                 option_width);
  }
  // Only the first paragraph of the description. The page of the verb has the rest.
  std::string make_subcommand(const CLI::App* verb) const override {
    std::istringstream lines(verb->get_description());
    std::string about;
    for (std::string line; std::getline(lines, line) && !line.empty() && line.front() != ' ';)
      about += (about.empty() ? "" : " ") + line;
    return entry(verb->get_name(), about, name_width());
  }
};

void add_examples(CLI::App& verb, const std::string& name) {
  const Verb* help = row_or_null(verbs, &Verb::name, name);
  if (help == nullptr) return;
  verb.group(help->group);
  std::string footer = verb.get_footer();
  if (!footer.empty()) footer += "\n\n";
  footer += "Examples:";
  std::istringstream lines(help->examples);
  for (std::string line; std::getline(lines, line);) footer += "\n  " + line;
  verb.footer(footer);
}

}  // namespace

void add_help_pages(CLI::App& program) {
  const auto formatter = std::make_shared<HelpFormatter>();
  formatter->label("Positionals", "Arguments");
  formatter->label("SUBCOMMAND", "COMMAND");
  formatter->label("REQUIRED", "(required)");
  program.formatter(formatter);
  for (CLI::App* verb : program.get_subcommands([](const CLI::App*) { return true; })) {
    verb->formatter(formatter);
    add_examples(*verb, verb->get_name());
    for (CLI::App* inner : verb->get_subcommands([](const CLI::App*) { return true; })) {
      inner->formatter(formatter);
      add_examples(*inner, verb->get_name() + " " + inner->get_name());
    }
  }
}

}  // namespace trainyard::tools
