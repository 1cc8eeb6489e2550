#include "core/rules/cases/cases.h"

namespace addend {

const std::vector<Case>& Cases() {
  static const auto& cases = *[] {
    auto* all = new std::vector<Case>;
    AddActivations(all);
    AddArithmetic(all);
    AddProducts(all);
    AddWindows(all);
    AddNormalizations(all);
    AddReductions(all);
    AddIndexing(all);
    AddShapes(all);
    AddSpecial(all);
    AddSelections(all);
    AddAttention(all);
    return all;
  }();
  return cases;
}

}  // namespace addend
