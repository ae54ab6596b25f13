#include "tools/trainyard/cli/standard_streams.h"

#include <initializer_list>

#include <fcntl.h>
#include <unistd.h>

namespace trainyard::tools {

void open_closed_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(stream, F_GETFD) == -1)
      (void)::open("/dev/null", O_RDWR);  // takes the lowest number that is free
}

}  // namespace trainyard::tools
