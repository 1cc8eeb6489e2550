#include "c_api/warnings.h"

#include <c10/util/Exception.h>
#include <torch/version.h>

#include <string>

namespace addend::c_api {
namespace {

// The first line says it; more are about Python.
void Tell(const LogCallback& log, const std::string& message) {
  if (log.function == nullptr) return;
  const std::string line = message.substr(0, message.find('\n'));
  log.function(log.payload.get(), ADDEND_LOG_WARNING, line.c_str());
}

// LibTorch changed how it hands warnings over with version 2.
#if TORCH_VERSION_MAJOR < 2
using WarningGuard = c10::Warning::WarningHandlerGuard;

class Handler : public c10::WarningHandler {
 public:
  explicit Handler(const LogCallback& log) : log_(log) {}
  void process(const c10::SourceLocation& /*where*/, const std::string& message, const bool /*verbatim*/) override {
    Tell(log_, message);
  }

 private:
  const LogCallback& log_;
};
#else
using WarningGuard = c10::WarningUtils::WarningHandlerGuard;

class Handler : public c10::WarningHandler {
 public:
  explicit Handler(const LogCallback& log) : log_(log) {}
  void process(const c10::Warning& warning) override { Tell(log_, warning.msg()); }

 private:
  const LogCallback& log_;
};
#endif

}  // namespace

struct WarningsToLog::Guards {
  explicit Guards(const LogCallback& log) : handler(log), guard(&handler) {}
  Handler handler;
  WarningGuard guard;
};

WarningsToLog::WarningsToLog(const LogCallback& log) : guards_(std::make_unique<Guards>(log)) {}
WarningsToLog::~WarningsToLog() = default;

}  // namespace addend::c_api
