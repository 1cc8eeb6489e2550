// What the components of a run are to a reader: pixels, words or columns with their names and values.
#ifndef ADDEND_TOOLS_ADDEND_PARTS_H_
#define ADDEND_TOOLS_ADDEND_PARTS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/addend/inputs.h"

namespace addend::cli {

struct Part {
  std::string name;
  // Where it is one number.
  std::optional<double> value;
  std::optional<double> baseline;
};

struct Image {
  int64_t height = 0;
  int64_t width = 0;
  int64_t channels = 0;
  std::vector<double> values;  // one grey level per pixel: the mean of its channels
  double value_min = 0;
  double value_max = 0;
};

struct Parts {
  std::string kind;  // "table", "image", "text" or "list"
  std::vector<Part> parts;
  std::optional<Image> image;        // where the kind is image: part i is pixel i, row by row
  std::string text;                  // the sentence, if there is one
  std::vector<std::string> classes;  // names along the last dimension of the output; may be empty
  bool classes_asked = false;        // they were given on the command line and have to fit

  std::string noun;  // what one of them is called: "feature", "pixel", "word", "token" or "part"
};

// Names come from --names and --classes, else from the metadata of the input's file, else they are positions. Throws
// InvalidArgument where the number of --names is not that of the components.
Parts DescribeParts(const LoadedRun& run, const std::string& names, const std::string& classes);

}  // namespace addend::cli

#endif  // ADDEND_TOOLS_ADDEND_PARTS_H_
