#include "core/linearize/stand_in.h"

#include "core/linearize/references.h"

namespace addend {

void ReplaceReference(TracedRun& trace, int64_t first, size_t output, const at::Tensor& reference) {
  References references(&trace);
  const std::vector<Call>& calls = trace.program.calls;
  references.Replace(calls[first], output, reference);
  for (size_t c = first + 1; c < calls.size(); ++c) references.Follow(calls[c]);
}

}  // namespace addend
