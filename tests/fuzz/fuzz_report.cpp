// Reads any bytes as a report.json. What is accepted becomes a page, a text and the same file again.
#include <cstdlib>

#include "base/error.h"
#include "reports/document/report_json.h"
#include "reports/report/page.h"
#include "reports/report/report.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) try {
  using namespace trainyard::reports;
  const Report report = report_from_json({reinterpret_cast<const char*>(bytes), size}, "report.json");
  const std::string text = report_json(report);
  if (report_json(report_from_json(text, "report.json")) != text) std::abort();
  const Content content = compose(report);
  page_html(content);
  terminal_table(content, 80);
  markdown_report(content, {});
  return 0;
} catch (const trainyard::UserError&) {
  return 0;
}
