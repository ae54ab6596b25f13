#include "tools/trainyard/commands/help_pages.h"

#include <algorithm>
#include <array>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>

#include <CLI/CLI.hpp>

#include "base/text.h"
#include "tools/trainyard/commands/commands.h"

namespace trainyard::tools {
namespace {

constexpr std::size_t page_width = 80, verb_width = 12, option_width = 30;

struct VerbHelp {
  std::string_view verb;  // "data get" is `get` of `data`
  const char* group;      // in the list of the verbs
  const char* examples;   // each line has a command, and what it does
};

constexpr const char* write_group = "Write an experiment";
constexpr const char* train_group = "Train";
constexpr const char* watch_group = "Watch runs";
constexpr const char* results_group = "Read results";
constexpr const char* keep_group = "Manage results";
constexpr const char* part_group = "Subcommands";

// In the order of a user's way.
constexpr std::array verb_help{
    VerbHelp{"new", write_group, "trainyard new first.toml"},
    VerbHelp{"list", write_group,
             "trainyard list models            # names, tasks and data sets\n"
             "trainyard list models seq2seq    # its hyper-parameters and layers\n"
             "trainyard list keys batch        # meaning, allowed values and default"},
    VerbHelp{"data", write_group,
             "trainyard data get multi30k --data ~/data\n"
             "trainyard data verify --data ~/data"},
    VerbHelp{"data list", part_group, "trainyard data list --data ~/data"},
    VerbHelp{"data get", part_group,
             "trainyard data get mnist --data ~/data\n"
             "trainyard data get mnist --data ~/data --from https://mirror.example/mnist/"},
    VerbHelp{"data verify", part_group, "trainyard data verify mnist --data ~/data"},
    VerbHelp{"check", write_group,
             "trainyard check first.toml\n"
             "trainyard check first.toml --set epochs=1 --where model=mlp"},
    VerbHelp{"plan", write_group,
             "trainyard plan first.toml\n"
             "trainyard plan first.toml --exclude-where model=cnn,seed=3"},
    VerbHelp{"run", train_group,
             "trainyard run first.toml\n"
             "trainyard run first.toml --where model=mlp --max-retries 2\n"
             "trainyard run first              # by name: its file of the last time"},
    VerbHelp{"resume", train_group,
             "trainyard resume                 # the experiment that was run last\n"
             "trainyard resume first --failed  # only its failed runs"},
    VerbHelp{"status", watch_group,
             "trainyard status                 # the experiment that was run last\n"
             "trainyard status first --all     # its finished runs too\n"
             "trainyard status --watch         # until the sweep ends, with the time left"},
    VerbHelp{"show", watch_group,
             "trainyard show last\n"
             "trainyard show 3f9a              # the run whose key begins like that"},
    VerbHelp{"logs", watch_group,
             "trainyard logs --follow          # trainyard.log, until the sweep ends\n"
             "trainyard logs last --follow\n"
             "trainyard logs 3f9a --rank 1 --attempt 2"},
    VerbHelp{"report", results_group,
             "trainyard report                 # the experiment that was run last\n"
             "trainyard report first --format html,latex,csv --out paper"},
    VerbHelp{"compare", results_group,
             "trainyard compare                # as the file of the last experiment says\n"
             "trainyard compare single ddp     # two values of the axis that it compares\n"
             "trainyard compare strategy=ddp,batch=64 strategy=ddp,batch=128\n"
             "trainyard compare 3f9a 77b2      # two runs by the beginnings of their keys\n"
             "trainyard compare --fail-on deteriorates   # for CI: exit code 3"},
    VerbHelp{"predict", results_group,
             "trainyard predict first          # an experiment of the yard, or its file\n"
             "trainyard predict first.toml --where model=cnn --format csv"},
    VerbHelp{"export", results_group,
             "trainyard export final --out final.csv\n"
             "trainyard export epochs --experiment first --format jsonl"},
    VerbHelp{"sql", results_group,
             "trainyard sql --schema           # the views, and the columns of each\n"
             "trainyard sql \"SELECT model, AVG(test_accuracy) FROM final_metrics GROUP BY 1\""},
    VerbHelp{"rm", keep_group,
             "trainyard rm last                # one run; its files stay\n"
             "trainyard rm first --where model=mlp,strategy=ddp\n"
             "trainyard rm 3f9a 77b2 --files"},
    VerbHelp{"db", keep_group, "trainyard db check\ntrainyard db backup results-copy.db"},
    VerbHelp{"db check", part_group, "trainyard db check --yard results"},
    VerbHelp{"db backup", part_group, "trainyard db backup results-copy.db"},
    VerbHelp{"db rebuild", part_group, "trainyard db rebuild --yard results"}};

const VerbHelp* find_help(std::string_view verb) {
  const auto* const found = std::ranges::find(verb_help, verb, &VerbHelp::verb);
  return found == verb_help.end() ? nullptr : found;
}

// One paragraph broken between words; a word that is wider has a line of its own. `after`: what every line
// but the first begins with.
std::string broken(const std::string& paragraph, std::size_t width, const std::string& after) {
  std::istringstream words(paragraph);
  std::string text, line;
  for (std::string word; words >> word;) {
    if (!line.empty() && trainyard::columns(line) + 1 + trainyard::columns(word) > width) {
      text += line + '\n' + after;
      line.clear();
    }
    line += (line.empty() ? "" : " ") + word;
  }
  return text + line;
}

// A description behind a name: the name's column is as wide as `indent`.
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
    body += (body.empty() ? "" : "\n" + spaces) + broken(line, page_width - indent, spaces);
  return text + body + '\n';
}

// Paragraphs as wide as the page. Lines that begin with a space are kept: they are laid out already.
std::string broken_paragraphs(const std::string& text) {
  std::istringstream lines(text);
  std::string paragraph, result;
  const auto end_paragraph = [&] {
    if (!paragraph.empty()) result += broken(paragraph, page_width, "") + '\n';
    paragraph.clear();
  };
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty() && line.front() != ' ') {
      paragraph += line + '\n';
      continue;
    }
    end_paragraph();
    result += line + '\n';
  }
  end_paragraph();
  return result;
}

// An argument by its name alone: CLI's own layout adds a number, as in "A B(2x)".
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
  // The first paragraph of the description: the rest is for the page of the verb.
  std::string make_subcommand(const CLI::App* verb) const override {
    std::istringstream lines(verb->get_description());
    std::string about;
    for (std::string line; std::getline(lines, line) && !line.empty() && line.front() != ' ';)
      about += line + ' ';
    return entry(verb->get_name(), about, verb_width);
  }
};

void add_examples(CLI::App& verb, const std::string& name) {
  const VerbHelp* help = find_help(name);
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
  formatter->label("SUBCOMMAND", "VERB");
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
