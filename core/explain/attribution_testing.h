// Attributions compared bit for bit.
#ifndef ADDEND_CORE_EXPLAIN_ATTRIBUTION_TESTING_H_
#define ADDEND_CORE_EXPLAIN_ATTRIBUTION_TESTING_H_

#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/explain/attribute.h"

namespace addend {

// Everything but times, and notes of the first about a memory limit.
inline void ExpectSameBits(const Attribution& a, const Attribution& b) {
  EXPECT_TRUE(at::equal(a.value, b.value));
  ASSERT_EQ(a.targets.size(), b.targets.size());
  for (size_t t = 0; t < a.targets.size(); ++t) {
    const Contributions& own = a.targets[t];
    const Contributions& other = b.targets[t];
    EXPECT_EQ(own.contributions, other.contributions);
    EXPECT_EQ(own.value, other.value);
    EXPECT_EQ(own.reference, other.reference);
    EXPECT_EQ(own.leftover, other.leftover);
    EXPECT_EQ(own.recovery, other.recovery);
    EXPECT_EQ(own.tolerance, other.tolerance);
  }
  ASSERT_EQ(a.inputs.size(), b.inputs.size());
  for (size_t k = 0; k < a.inputs.size(); ++k) {
    ASSERT_EQ(a.inputs[k].defined(), b.inputs[k].defined());
    if (a.inputs[k].defined()) {
      EXPECT_TRUE(at::equal(a.inputs[k], b.inputs[k]));
    }
  }
  ASSERT_EQ(a.operators.size(), b.operators.size());
  for (size_t k = 0; k < a.operators.size(); ++k) {
    EXPECT_EQ(a.operators[k].call, b.operators[k].call);
    EXPECT_EQ(a.operators[k].passed, b.operators[k].passed);
    EXPECT_EQ(a.operators[k].leftover, b.operators[k].leftover);
  }
  EXPECT_EQ(a.report.nodes, b.report.nodes);
  EXPECT_EQ(a.report.operators_by_kind, b.report.operators_by_kind);
  EXPECT_EQ(a.report.worst_recovery_error, b.report.worst_recovery_error);
  EXPECT_EQ(a.report.conditioning, b.report.conditioning);
  std::vector<std::string> notes = a.report.notes;
  const auto about_the_limit = [](const std::string& note) { return note.find("memory limit") != std::string::npos; };
  notes.erase(std::remove_if(notes.begin(), notes.end(), about_the_limit), notes.end());
  EXPECT_EQ(notes, b.report.notes);
  EXPECT_EQ(a.report.failures.size(), b.report.failures.size());
}

}  // namespace addend

#endif  // ADDEND_CORE_EXPLAIN_ATTRIBUTION_TESTING_H_
