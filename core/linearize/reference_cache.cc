#include "core/linearize/reference_cache.h"

#include <c10/core/GradMode.h>

#include <algorithm>
#include <utility>

#include "core/intercept/tracing_scope.h"

namespace addend {
namespace {

// Larger tensors that the run wrote are not copied for the sake of the next run.
constexpr int64_t kLargestCopy = 65536;

bool SameArgument(const c10::IValue& a, const c10::IValue& b) {
  if (a.tagKind() != b.tagKind()) return false;
  // Objects have an identity only, and comparing some of them throws.
  if (a.isObject() || a.isPyObject() || a.isStream() || a.isGenerator()) return false;
  return a == b;
}

bool SameOperand(const Operand& a, const Operand& b) {
  return a.SamePlace(b) && a.version == b.version && a.argument == b.argument && a.decomposed == b.decomposed &&
         a.labelled == b.labelled && a.written == b.written;
}

bool SameTypeAndShape(const at::Tensor& a, const at::Tensor& b) {
  return a.scalar_type() == b.scalar_type() && a.device() == b.device() && a.sizes() == b.sizes();
}

// Inference tensors have no count; those that are kept are copies, which nobody writes.
int64_t VersionOf(const at::Tensor& tensor) { return tensor.is_inference() ? 0 : tensor._version(); }

}  // namespace

RunReferences::Plain PlainSeen(const at::Tensor& tensor, bool written) {
  RunReferences::Plain plain;
  if (!tensor.defined() || !tensor.has_storage() || tensor.is_meta()) return plain;
  if (!written && !tensor.is_inference()) {
    plain.seen = tensor;
  } else if (tensor.numel() <= kLargestCopy) {
    const TracingPause pause;
    const c10::AutoGradMode no_grad(false);
    plain.seen = tensor.clone();
  } else {
    return plain;
  }
  plain.version = VersionOf(plain.seen);
  return plain;
}

bool SamePlain(const RunReferences::Plain& known, const RunReferences::Plain& now) {
  if (!known.seen.defined() || !now.seen.defined() || VersionOf(known.seen) != known.version ||
      !SameTypeAndShape(known.seen, now.seen)) {
    return false;
  }
  if (known.seen.storage().unsafeGetStorageImpl() == now.seen.storage().unsafeGetStorageImpl() &&
      known.seen.storage_offset() == now.seen.storage_offset() && known.seen.strides() == now.seen.strides() &&
      known.seen.is_conj() == now.seen.is_conj() && known.seen.is_neg() == now.seen.is_neg()) {
    return known.version == now.version;
  }
  const TracingPause pause;
  return known.seen.equal(now.seen);
}

bool SameCall(const RunReferences::Known& a, const RunReferences::Known& b) {
  return a.op == b.op && a.operands.size() == b.operands.size() && a.arguments.size() == b.arguments.size() &&
         std::equal(a.operands.begin(), a.operands.end(), b.operands.begin(), SameOperand) &&
         std::equal(a.arguments.begin(), a.arguments.end(), b.arguments.begin(), SameArgument);
}

std::shared_ptr<const RunReferences> ReferenceCache::Last() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return last_;
}

void ReferenceCache::Store(std::shared_ptr<const RunReferences> run) {
  const std::lock_guard<std::mutex> lock(mutex_);
  last_ = std::move(run);
}

void ReferenceCache::Clear() { Store(nullptr); }

}  // namespace addend
