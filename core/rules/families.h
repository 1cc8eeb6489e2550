// One registration function for each family of operators; registry.cc calls them all.
#ifndef ADDEND_CORE_RULES_FAMILIES_H_
#define ADDEND_CORE_RULES_FAMILIES_H_

#include "core/rules/registry.h"

namespace addend {

void RegisterActivation(Registry& registry);
void RegisterArithmetic(Registry& registry);
void RegisterLinear(Registry& registry);
void RegisterConvolution(Registry& registry);
void RegisterPooling(Registry& registry);
void RegisterNormalization(Registry& registry);
void RegisterReduction(Registry& registry);
void RegisterSpecial(Registry& registry);
void RegisterSelection(Registry& registry);
void RegisterProduct(Registry& registry);
void RegisterNorm(Registry& registry);
void RegisterLoss(Registry& registry);
void RegisterGradient(Registry& registry);
void RegisterIndexing(Registry& registry);
void RegisterScatter(Registry& registry);
void RegisterRearrangement(Registry& registry);
void RegisterResample(Registry& registry);
void RegisterEmbedding(Registry& registry);
void RegisterRandom(Registry& registry);
void RegisterTrilinear(Registry& registry);
void RegisterShape(Registry& registry);
void RegisterAttention(Registry& registry);
void RegisterRecurrent(Registry& registry);
void RegisterStepwise(Registry& registry);
void RegisterTrees(Registry& registry);
void RegisterTransformer(Registry& registry);
void RegisterNormalizationRewrites(Registry& registry);
void RegisterLinalg(Registry& registry);
void RegisterFactorization(Registry& registry);
void RegisterEigen(Registry& registry);
void RegisterReflectors(Registry& registry);
// After all others: it extends some of their rules to complex numbers.
void RegisterSpectral(Registry& registry);

}  // namespace addend

#endif  // ADDEND_CORE_RULES_FAMILIES_H_
