// Kinds of components for a reader: pixels, words or columns, with their names and values.
#ifndef ADDEND_CORE_DOCUMENT_COMPONENTS_H_
#define ADDEND_CORE_DOCUMENT_COMPONENTS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/explain/input.h"

namespace addend {

// An input of a run as documents tell of it. Empty texts: not known.
struct ExplainedInput {
  Input input;  // of a split inside the model: with the value that the model computed there
  std::string name;
  std::string path;
  std::string sha256;
  std::optional<int64_t> row;  // of the file, where the input is one row of it
  std::string split;           // as DescribeSplit() says it
  std::string baseline;        // empty where the input is plain
  bool baseline_given = false;
  std::string baseline_sha256;
  // Names of its components that the caller chose, the first ones first; the others have names by position.
  std::vector<std::string> names;
  // Names that its file gives to all of its components, or none. The caller's come before them.
  std::vector<std::string> own_names;
  std::string stated_kind;  // "image", "table", "text" or "list", where its file says so
  std::string sentence;     // that its ids spell
};

// Describes an input by its split and its baseline, in words.
ExplainedInput DescribeInput(const Input& input);

struct Component {
  std::string name;
  // The component's number and its baseline, if it is one number of one input.
  std::optional<double> value;
  std::optional<double> baseline;
};

struct Components {
  // "table": columns of numbers; "image": pixels, row by row; "text": words or tokens; "list": anything else.
  std::string kind = "list";
  std::string noun = "component";  // what one of them is called: "feature", "pixel", "word", "token" or "component"
  std::vector<Component> list;
  std::string text;  // the sentence, if there is one
};

// "component 3": the name of one of which nothing else is known.
std::string ComponentName(int64_t component);

// The components of a run with their names, without values. Names that nobody chose tell the position: "row 1, column
// 5" of an image, "column 3" of a table, "position 3" and "[1, 3]" along other dimensions, "component 3" otherwise.
// Where several inputs are split, all but those of the caller and "component 3" begin with the input's name and a
// colon. `numc`: of the run. Throws InvalidArgument for more names than components.
Components NameComponents(const std::vector<ExplainedInput>& inputs, int64_t numc);

// Adds the values of components that are one floating-point number of an argument. `prepared`: the same inputs.
void AddValues(const std::vector<ExplainedInput>& inputs, const PreparedInputs& prepared, Components& components);

// The picture whose pixels the components are.
struct Image {
  int64_t height = 0;
  int64_t width = 0;
  int64_t channels = 0;
  std::vector<double> values;  // one grey level for each pixel, row by row: the mean of its channels
  // The least and the largest finite grey level of the picture and of its baseline, where that is a number or a tensor.
  double value_min = 0;
  double value_max = 0;
};

// None unless the kind is "image".
std::optional<Image> ImageOf(const std::vector<ExplainedInput>& inputs, const Components& components);

}  // namespace addend

#endif  // ADDEND_CORE_DOCUMENT_COMPONENTS_H_
