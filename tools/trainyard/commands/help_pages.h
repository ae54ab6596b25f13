// Help pages of the program and of its commands. The list of commands is in groups, with one line per
// command. Each `VERB --help` ends with examples. Lines are at most 80 columns wide. Used by main.
#pragma once

namespace CLI {
class App;
}

namespace trainyard::tools {

// Set the groups and examples of all verbs, and the layout of all help pages. Call it after adding the verbs.
void add_help_pages(CLI::App& program);

}  // namespace trainyard::tools
