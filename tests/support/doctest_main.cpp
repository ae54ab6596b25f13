#define DOCTEST_CONFIG_IMPLEMENT
#include <iostream>

#include <doctest/doctest.h>

int main(int argc, char** argv) {
  std::cout << std::unitbuf;  // so that no output is lost if the process is killed
  return doctest::Context(argc, argv).run();
}
