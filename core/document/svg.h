// The figure of one explanation: a picture in SVG that needs no browser to be made, for reports and e-mails.
#ifndef ADDEND_CORE_DOCUMENT_SVG_H_
#define ADDEND_CORE_DOCUMENT_SVG_H_

#include <string>

#include "core/document/explanation.h"

namespace addend {

// The way from the reference to the value of the first target, a bar for each of the largest contributions, for the
// others together, for the leftover unless it is nothing but rounding, and for what is missing where the parts do not
// add up. Below it stand the sum in numbers and every note. The picture is the same for an explanation and for what
// ReadExplanation() made of its JSON. It holds no script and refers to nothing outside of it. Throws FailedPrecondition
// where a number is not finite, for which no bar can be drawn.
std::string ExplanationSvg(const Explanation& explanation);

}  // namespace addend

#endif  // ADDEND_CORE_DOCUMENT_SVG_H_
