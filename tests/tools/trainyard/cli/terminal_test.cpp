#include "tools/trainyard/cli/terminal.h"

#include <cerrno>
#include <new>

#include <doctest/doctest.h>

using trainyard::tools::PrintableOutput;

namespace {

// The target of an output while memory is used up.
struct NoMemory : std::streambuf {
  std::streamsize xsputn(const char* /*text*/, std::streamsize size) override {
    if (size > 0) throw std::bad_alloc();
    return 0;
  }
};

}  // namespace

TEST_CASE("if memory runs out while output is escaped, the output is known to be incomplete") {
  NoMemory target;
  std::ostream stream(&target);
  {
    PrintableOutput output(stream);
    stream << "a line\n";
    CHECK(output.error() == ENOMEM);
  }
}
