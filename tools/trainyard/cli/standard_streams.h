// The three standard streams as every verb takes them to be: there.
#pragma once

namespace trainyard::tools {

// Puts /dev/null where a caller has closed one (`trainyard run FILE >&-`). Its number would be that of the
// next file that is opened, the lock of a yard or its journal, and what is printed would be written into
// that.
void open_closed_streams();

}  // namespace trainyard::tools
