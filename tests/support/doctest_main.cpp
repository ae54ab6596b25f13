#define DOCTEST_CONFIG_IMPLEMENT
#include <iostream>

#include <doctest/doctest.h>

int main(int argc, char** argv) {
  std::cout << std::unitbuf;  // what was said before a process is killed is not lost with it
  return doctest::Context(argc, argv).run();
}
