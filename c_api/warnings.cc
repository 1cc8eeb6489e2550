#include "c_api/warnings.h"

#include <string>

namespace addend::c_api {

WarningsToLog::WarningsToLog(const LogCallback& log)
    : warnings_([&log](const std::string& message) {
        if (log.function == nullptr) return;
        // The first line says it; more are about Python.
        const std::string line = message.substr(0, message.find('\n'));
        log.function(log.payload.get(), ADDEND_LOG_WARNING, line.c_str());
      }) {}

}  // namespace addend::c_api
