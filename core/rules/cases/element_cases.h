// The cases of the families that are about which element goes where; see cases.h for the others.
#ifndef ADDEND_CORE_RULES_CASES_ELEMENT_CASES_H_
#define ADDEND_CORE_RULES_CASES_ELEMENT_CASES_H_

#include <vector>

#include "core/rules/cases/cases.h"

namespace addend {

void AddScatters(std::vector<Case>* cases);
void AddRearrangements(std::vector<Case>* cases);
void AddResampling(std::vector<Case>* cases);
void AddEmbeddings(std::vector<Case>* cases);
void AddRandom(std::vector<Case>* cases);

}  // namespace addend

#endif  // ADDEND_CORE_RULES_CASES_ELEMENT_CASES_H_
