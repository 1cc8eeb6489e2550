#include "core/model/live_scope.h"

#include <atomic>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/error.h"

namespace addend {

class LiveScope::Switch : public CallHandler {
 public:
  explicit Switch(std::shared_ptr<CallHandler> handler) : handler_(std::move(handler)) { scope_.emplace(this); }

  void Handle(const Operator& op, Stack* stack) override {
    if (off_) return op.Run(stack);
    handler_->Handle(op, stack);
  }
  at::ScalarType computed_in() const override { return off_ ? at::ScalarType::Undefined : handler_->computed_in(); }

  bool OnOwnThread() const { return std::this_thread::get_id() == thread_; }
  void TurnOff() { off_ = true; }
  void Close() {
    off_ = true;
    scope_.reset();
  }

 private:
  const std::shared_ptr<CallHandler> handler_;
  const std::thread::id thread_ = std::this_thread::get_id();
  std::atomic<bool> off_{false};
  std::optional<TracingScope> scope_;
};

LiveScope::LiveScope(std::shared_ptr<CallHandler> handler) : switch_(std::make_unique<Switch>(std::move(handler))) {}

LiveScope::~LiveScope() {
  if (switch_->OnOwnThread()) {
    switch_->Close();
    return;
  }
  switch_->TurnOff();
  static auto& abandoned = *new std::vector<std::unique_ptr<Switch>>();
  static auto& mutex = *new std::mutex();
  const std::lock_guard<std::mutex> one_at_a_time(mutex);
  abandoned.push_back(std::move(switch_));
}

void LiveScope::RequireOwnThread() const {
  if (!switch_->OnOwnThread()) {
    throw FailedPrecondition("the trace was begun on another thread; it belongs there");
  }
}

void LiveScope::Close() {
  RequireOwnThread();
  switch_->Close();
}

}  // namespace addend
