// Quadrature on 0..1.
#ifndef ADDEND_CORE_RULES_QUADRATURE_H_
#define ADDEND_CORE_RULES_QUADRATURE_H_

#include <vector>

namespace addend {

// Gauss-Legendre nodes and weights on 0..1.
struct Quadrature {
  std::vector<double> nodes;
  std::vector<double> weights;
};
Quadrature GaussLegendre(int count);

}  // namespace addend

#endif  // ADDEND_CORE_RULES_QUADRATURE_H_
