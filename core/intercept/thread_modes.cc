#include "core/intercept/thread_modes.h"

#include <c10/core/DispatchKeySet.h>
#include <c10/core/GradMode.h>
#include <c10/core/InferenceMode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <optional>

#include "core/base/error.h"

namespace addend {

// at::autocast says the same, in other words from release to release, and warns about the older ones.
bool UnderAutocast() {
  const auto excluded = [](c10::DispatchKey key) { return c10::impl::tls_is_dispatch_key_excluded(key); };
  return !excluded(c10::DispatchKey::AutocastCUDA) || !excluded(c10::DispatchKey::AutocastCPU);
}

void RequireNoAutocast() {
  if (!UnderAutocast()) return;
  throw FailedPrecondition(
      "autocast is on, which casts behind the operators, where nothing can be checked: leave it, and convert the model "
      "and its inputs if another dtype is wanted");
}

bool UnderTransform() {
  return c10::impl::tls_is_dispatch_key_included(c10::DispatchKey::FuncTorchDynamicLayerFrontMode);
}

struct NormalMode::Guards {
  std::optional<c10::InferenceMode> normal{false};
  c10::AutoGradMode no_grad{false};
};

NormalMode::NormalMode() {
  if (c10::InferenceMode::is_enabled()) guards_ = std::make_unique<Guards>();
}

NormalMode::~NormalMode() {
  if (guards_ == nullptr) return;
  const c10::impl::LocalDispatchKeySet now = c10::impl::tls_local_dispatch_key_set();
  guards_.reset();
  // That has put back all keys of the thread; only those of the mode are meant.
  const c10::DispatchKeySet included = now.included_.remove(c10::DispatchKey::ADInplaceOrView);
  const c10::DispatchKeySet excluded = now.excluded_ | c10::autograd_dispatch_keyset;
  c10::impl::PODLocalDispatchKeySet keys{};
  keys.set_included(included);
  keys.set_excluded(excluded);
  c10::impl::_force_tls_local_dispatch_key_set(c10::impl::LocalDispatchKeySet(keys));
}

}  // namespace addend
