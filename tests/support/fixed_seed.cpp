// Each test case of a program that links LibTorch begins with the same state of LibTorch's random numbers. Otherwise a
// test to a tolerance would fail now and then.
#include <doctest/doctest.h>
#include <torch/torch.h>

namespace {

struct FixedSeed : doctest::IReporter {
  explicit FixedSeed(const doctest::ContextOptions&) {}
  void report_query(const doctest::QueryData&) override {}
  void test_run_start() override {}
  void test_run_end(const doctest::TestRunStats&) override {}
  void test_case_start(const doctest::TestCaseData&) override { at::manual_seed(1); }
  void test_case_reenter(const doctest::TestCaseData&) override {}
  void test_case_end(const doctest::CurrentTestCaseStats&) override {}
  void test_case_exception(const doctest::TestCaseException&) override {}
  void subcase_start(const doctest::SubcaseSignature&) override {}
  void subcase_end() override {}
  void log_assert(const doctest::AssertData&) override {}
  void log_message(const doctest::MessageData&) override {}
  void test_case_skipped(const doctest::TestCaseData&) override {}
};

REGISTER_LISTENER("fixed seed", 1, FixedSeed);

}  // namespace
