// Text laid out for readers, on terminals and in pictures: how wide it is, where it is cut, its lines, and how numbers
// are written. The same bytes everywhere: no locale changes them.
#ifndef ADDEND_CORE_BASE_READABLE_H_
#define ADDEND_CORE_BASE_READABLE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace addend {

// The width of a character, in the unit of the widths that stand beside it.
using Measure = double (*)(uint32_t code);
// Columns of a terminal: 0 for marks that join the character before them, 2 for the wide scripts and pictures of East
// Asia, else 1, also for bytes that are no UTF-8.
double InColumns(uint32_t code);

double WidthOf(const std::string& text, Measure measure = InColumns);
// The bytes of the longest beginning that is no wider, whole characters with the marks that join them.
size_t Fitting(const std::string& text, double width, Measure measure = InColumns);
// At most `width`; what is cut away at the end is marked.
std::string CutEnd(const std::string& text, double width, const std::string& mark, Measure measure = InColumns);
// Lines of at most `width`, broken at spaces; all but the first begin with `indent` spaces. Words that are wider than a
// line stay whole.
std::vector<std::string> Lines(const std::string& text, double width, size_t indent = 0, Measure measure = InColumns);

// "3 words", "1 word"
std::string Plural(size_t count, const std::string& noun);

// `digits` significant digits.
std::string Number(double x, int digits);
// A short number with exponent for errors: "2.1e-07", "0".
std::string Small(double x);

// Numbers of one column or sum: the same decimals for all, enough to show `digits` digits of the largest.
class NumberFormat {
 public:
  NumberFormat(const std::vector<double>& numbers, int digits);
  std::string operator()(double x) const;
  std::string Signed(double x) const;

 private:
  int decimals_ = 0;
  bool exponent_ = false;
  int digits_ = 0;
};

}  // namespace addend

#endif  // ADDEND_CORE_BASE_READABLE_H_
