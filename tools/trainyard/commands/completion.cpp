// trainyard completion: a script that completes commands and options in a shell, from the tables of CLI11.
#include <iostream>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/text.h"
#include "tools/trainyard/commands/commands.h"

namespace trainyard::tools {
namespace {

// The lines of a command and its inner commands. `place`: the words before, or their condition for fish.
std::string lines_of(const CLI::App& verb, const std::string& place, bool fish) {
  const std::string seen = (place.empty() ? "" : place + "; and ") + "__fish_seen_subcommand_from ";
  std::string lines, words;
  const auto add = [&](const char* what, const std::string& word, const std::string& about) {
    words += fmt::format("{}{} ", *what == 'a' ? "" : "--", word);
    if (fish)
      lines += fmt::format("complete -c trainyard -n '{}' -{} {} -d {}\n",
                           place.empty() ? "__fish_use_subcommand" : place, what, word,
                           shell_quoted(about.substr(0, about.find('\n'))));
  };
  for (const CLI::App* each : verb.get_subcommands([](const CLI::App*) { return true; })) {
    lines += lines_of(*each, (fish ? seen : place + " ") + each->get_name(), fish);
    add("a", each->get_name(), each->get_description());
  }
  for (const CLI::Option* each : verb.get_options())
    for (const std::string& name : each->get_lnames())
      add(each->get_expected_min() > 0 ? "rl" : "l", name, each->get_description());
  return fish ? lines : lines + fmt::format("    \"{} \"*) words=\"{}\" ;;\n", place, words);
}

int print_script(const CLI::App& program, const std::string& shell) {
  const bool fish = shell == "fish";
  if (shell == "zsh")
    std::cout << "autoload -U compinit bashcompinit\ntype compdef >/dev/null || compinit\nbashcompinit\n";
  if (!fish)
    std::cout << "_trainyard() {\n  local words\n  case \" ${COMP_WORDS[*]:1:$((COMP_CWORD-1))} \" in\n";
  std::cout << lines_of(program, "", fish);
  if (!fish)
    std::cout << "  esac\n  [[ $2 == -* ]] || words=${words%%--*}\n  COMPREPLY=($(compgen -W \"$words\" -- "
                 "\"$2\"))\n}\ncomplete -o default -F _trainyard trainyard\n";
  return done;
}

}  // namespace

void add_completion(CLI::App& program, Invocation& invocation) {
  auto shell = std::make_shared<std::string>();
  auto* command =
      add_verb(program, invocation, "completion", "print a script that completes commands and options",
               [shell, &program] { return print_script(program, *shell); });
  command->add_option("SHELL", *shell, "bash, zsh or fish")
      ->required()
      ->check(one_of({"bash", "zsh", "fish"}));
}

}  // namespace trainyard::tools
