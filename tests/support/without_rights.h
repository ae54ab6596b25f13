// A user without rights, for tests that run as root. Root would pass every permission check.
#pragma once

#include <doctest/doctest.h>
#include <unistd.h>

// Drops the rights of root during its lifetime.
class WithoutRights {
 public:
  WithoutRights() : was_root_(::geteuid() == 0) {
    if (was_root_) REQUIRE(::seteuid(65534) == 0);
  }
  ~WithoutRights() {
    if (was_root_) CHECK(::seteuid(0) == 0);
  }
  WithoutRights(const WithoutRights&) = delete;
  WithoutRights& operator=(const WithoutRights&) = delete;

 private:
  bool was_root_;
};
