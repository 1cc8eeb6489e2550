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
void RegisterIndexing(Registry& registry);
void RegisterShape(Registry& registry);
void RegisterAttention(Registry& registry);
void RegisterRecurrent(Registry& registry);

}  // namespace addend

#endif  // ADDEND_CORE_RULES_FAMILIES_H_
