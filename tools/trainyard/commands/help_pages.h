// Help pages of the program and of its commands. The list of commands is in groups, with one line per
// command. Each `VERB --help` ends with examples. Lines are at most 80 columns wide. Used by main.
#pragma once

namespace CLI {
class App;
}

namespace trainyard::tools {

// Call it when all verbs are added: sets their groups, their examples and the layout of every help page.
void add_help_pages(CLI::App& program);

}  // namespace trainyard::tools
