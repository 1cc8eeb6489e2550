#include "third_party/torch/warnings.h"

#include <c10/util/Exception.h>
#include <torch/version.h>

#include <utility>

namespace addend {
namespace {

using Tell = std::function<void(const std::string&)>;

// LibTorch changed how it hands warnings over with version 2.
#if TORCH_VERSION_MAJOR < 2
using WarningGuard = c10::Warning::WarningHandlerGuard;

class Handler : public c10::WarningHandler {
 public:
  explicit Handler(Tell tell) : tell_(std::move(tell)) {}
  void process(const c10::SourceLocation& /*where*/, const std::string& message, const bool /*verbatim*/) override {
    tell_(message);
  }

 private:
  const Tell tell_;
};
#else
using WarningGuard = c10::WarningUtils::WarningHandlerGuard;

class Handler : public c10::WarningHandler {
 public:
  explicit Handler(Tell tell) : tell_(std::move(tell)) {}
  void process(const c10::Warning& warning) override { tell_(warning.msg()); }

 private:
  const Tell tell_;
};
#endif

}  // namespace

struct WarningsTo::Guards {
  explicit Guards(Tell tell) : handler(std::move(tell)), guard(&handler) {}
  Handler handler;
  WarningGuard guard;
};

WarningsTo::WarningsTo(Tell tell) : guards_(std::make_unique<Guards>(std::move(tell))) {}
WarningsTo::~WarningsTo() = default;

}  // namespace addend
