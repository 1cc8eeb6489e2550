// The result of `addend decompose` or `addend attribute`, ready to be written as a table, as JSON or as a page.
#ifndef ADDEND_TOOLS_ADDEND_EXPLANATION_H_
#define ADDEND_TOOLS_ADDEND_EXPLANATION_H_

#include <optional>
#include <string>
#include <vector>

#include "core/explain/attribute.h"
#include "core/explain/report.h"
#include "core/explain/target.h"
#include "tools/addend/inputs.h"
#include "tools/addend/parts.h"

namespace addend::cli {

// One number of the output and what it is made of.
struct ExplainedTarget {
  std::string name;
  bool named = false;  // it is the name of a class, not a position
  Contributions numbers;
  std::optional<double> probability;
  double tolerance = 0;  // how far recovery and value may be apart by rounding

  double recovery_error() const { return numbers.recovery - numbers.value; }
};

struct Explanation {
  LoadedRun run;
  Parts parts;
  std::string at;                            // the inner tensor that is explained; empty: the output
  std::vector<ExplainedTarget> targets;      // the one asked for first
  std::vector<OperatorRelevance> operators;  // what passed through them, where that was asked for
  bool operators_asked = false;
  Report report;
  std::vector<std::string> notes;  // of the program; those of the core are in the report
};

}  // namespace addend::cli

#endif  // ADDEND_TOOLS_ADDEND_EXPLANATION_H_
