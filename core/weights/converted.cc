#include "core/weights/converted.h"

#include <c10/core/impl/VirtualGuardImpl.h>

#include <utility>

namespace addend::weights {
namespace {

c10::ScalarType ComplexOf(c10::ScalarType real) {
  return real == c10::kDouble ? c10::kComplexDouble : real == c10::kHalf ? c10::kComplexHalf : c10::kComplexFloat;
}

}  // namespace

DtypeMap MapTo(c10::ScalarType dtype, absl::flat_hash_set<c10::ScalarType> own) {
  return [own = std::move(own), to = dtype](c10::ScalarType type) {
    if (c10::isComplexType(type)) {
      const c10::ScalarType complex = ComplexOf(to);
      return c10::elementSize(complex) > c10::elementSize(type) ? complex : type;
    }
    if (!c10::isFloatingType(type)) return type;
    return own.contains(type) || c10::elementSize(to) > c10::elementSize(type) ? to : type;
  };
}

c10::Device WithIndex(c10::Device device) {
  if (device.is_cpu() || device.has_index() || !c10::impl::hasDeviceGuardImpl(device.type())) return device;
  return c10::impl::VirtualGuardImpl(device.type()).getDevice();
}

}  // namespace addend::weights
