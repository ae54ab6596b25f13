#include "base/loaded_library.h"

#include <doctest/doctest.h>

#include "base/error.h"

namespace trainyard {
namespace {

TEST_CASE("functions of a library that is loaded at run time can be called") {
  const LoadedLibrary library("libm.so.6", "that computes", "libc6");
  double (*const cosine)(double) = library.function("cos");
  CHECK(cosine(0) == 1);
  CHECK_THROWS_WITH_AS(library.function("cosinus"),
                       "the library libm.so.6 has no function cosinus; install its current version",
                       UserError);
}

TEST_CASE("the error about a missing library says what needs it") {
  const auto load = [] { LoadedLibrary("libtrainyard-missing.so.1", "that writes PNG and PDF", "none"); };
  CHECK_THROWS_WITH_AS(
      load(),
      "cannot load the library that writes PNG and PDF: libtrainyard-missing.so.1: cannot open shared "
      "object file: No such file or directory; install the package that contains it, in Debian none",
      UserError);
}

}  // namespace
}  // namespace trainyard
