#include "core/rules/cases/cases.h"

#include "core/rules/cases/element_cases.h"

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
    AddScatters(all);
    AddRearrangements(all);
    AddResampling(all);
    AddEmbeddings(all);
    AddRandom(all);
    AddShapes(all);
    AddSpecial(all);
    AddSelections(all);
    AddAttention(all);
    AddStepwise(all);
    AddSpectral(all);
    AddLinalg(all);
    AddGradients(all);
    return all;
  }();
  return cases;
}

}  // namespace addend
