// The cases by which every rule is judged: one file for each family, one line for each case.
#ifndef ADDEND_CORE_RULES_CASES_CASES_H_
#define ADDEND_CORE_RULES_CASES_CASES_H_

#include <functional>
#include <vector>

#include "core/rules/rule_testing.h"

namespace addend {

using Arguments = std::vector<GivenArgument>;

struct Case {
  const char* op;
  const char* what;  // unique among the cases of the operator; may be empty
  std::function<Arguments(Draw&)> arguments;
  // The function has corners on the line, so that a quadrature of its derivative converges slowly.
  bool corners = false;
};

constexpr bool kCorners = true;

void AddActivations(std::vector<Case>* cases);
void AddArithmetic(std::vector<Case>* cases);
void AddProducts(std::vector<Case>* cases);
void AddWindows(std::vector<Case>* cases);
void AddNormalizations(std::vector<Case>* cases);
void AddReductions(std::vector<Case>* cases);
void AddIndexing(std::vector<Case>* cases);
void AddShapes(std::vector<Case>* cases);
void AddSpecial(std::vector<Case>* cases);
void AddSelections(std::vector<Case>* cases);
void AddAttention(std::vector<Case>* cases);
void AddStepwise(std::vector<Case>* cases);
void AddSpectral(std::vector<Case>* cases);
void AddLinalg(std::vector<Case>* cases);
void AddGradients(std::vector<Case>* cases);

// All of them.
const std::vector<Case>& Cases();

}  // namespace addend

#endif  // ADDEND_CORE_RULES_CASES_CASES_H_
