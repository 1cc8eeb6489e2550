// Images as people keep them: PNG and JPEG.
#ifndef ADDEND_TOOLS_ADDEND_IMAGE_FILE_H_
#define ADDEND_TOOLS_ADDEND_IMAGE_FILE_H_

#include <c10/core/ScalarType.h>

#include <string>
#include <vector>

#include "core/program/tensor_io.h"

namespace addend::cli {

// How the samples of an image become numbers.
struct ImageOptions {
  std::string channels;      // "gray", "rgb", or empty: as the file has them
  std::vector<double> mean;  // taken from each channel, of numbers in 0..1; empty: 0
  std::vector<double> std;   // each channel is then divided by it; empty: 1
};

// Whether the bytes are a PNG or a JPEG file, by their first ones.
bool IsImage(const std::string& bytes);

// Reads the content of such a file: "input" [1, channels, height, width] of `dtype`, in 0..1 before `mean` and `std`,
// three channels for colour and one for gray; metadata "kind" is "image". Samples are taken as they are stored,
// whatever the file says of gamma and profiles, and turned upright where EXIF says how. Gray from colour is the luma of
// ITU-R BT.601 in whole 255ths. `path` stands in messages. Throws InvalidArgument for files that are damaged or cut
// off, and for images that are transparent anywhere, which have no single look, or in CMYK.
TensorFile DecodeImage(const std::string& bytes, const std::string& path, const ImageOptions& options,
                       c10::ScalarType dtype);

}  // namespace addend::cli

#endif  // ADDEND_TOOLS_ADDEND_IMAGE_FILE_H_
