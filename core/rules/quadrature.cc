#include "core/rules/quadrature.h"

#include <cmath>

namespace addend {

Quadrature GaussLegendre(int count) {
  Quadrature rule;
  for (int i = 0; i < count; ++i) {
    // Newton's method on the Legendre polynomial, started at the usual asymptotic guess of its i-th root.
    double z = std::cos(M_PI * (i + 0.75) / (count + 0.5));
    double slope = 1;
    for (int step = 0; step < 100; ++step) {
      double p = 1;
      double before = 0;
      for (int j = 0; j < count; ++j) {
        const double next = ((2 * j + 1) * z * p - j * before) / (j + 1);
        before = p;
        p = next;
      }
      slope = count * (z * p - before) / (z * z - 1);
      const double correction = p / slope;
      z -= correction;
      if (std::abs(correction) < 1e-16) break;
    }
    rule.nodes.push_back((1 - z) / 2);
    rule.weights.push_back(1 / ((1 - z * z) * slope * slope));
  }
  return rule;
}

}  // namespace addend
