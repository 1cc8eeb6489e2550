// The families whose rules are about which element goes where; see families.h for the others.
#ifndef ADDEND_CORE_RULES_ELEMENT_FAMILIES_H_
#define ADDEND_CORE_RULES_ELEMENT_FAMILIES_H_

#include "core/rules/registry.h"

namespace addend {

void RegisterScatter(Registry& registry);
void RegisterRearrangement(Registry& registry);
void RegisterResample(Registry& registry);
void RegisterEmbedding(Registry& registry);
void RegisterRandom(Registry& registry);
void RegisterTrilinear(Registry& registry);

}  // namespace addend

#endif  // ADDEND_CORE_RULES_ELEMENT_FAMILIES_H_
