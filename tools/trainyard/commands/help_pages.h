// Help of the program and of its verbs: the list of verbs in groups, one or two lines for each, and the
// examples below `VERB --help`. Used by main. Lines are at most 80 columns wide.
#pragma once

namespace CLI {
class App;
}

namespace trainyard::tools {

// Call it when all verbs are added: sets their groups, their examples and the layout of every help page.
void add_help_pages(CLI::App& program);

}  // namespace trainyard::tools
