#include "tools/addend/image_file.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>
#include <png.h>
#include <turbojpeg.h>

#include <csetjmp>
#include <cstdint>
#include <cstring>
#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/error.h"

namespace addend::cli {
namespace {

Error OutOfMemory(const std::string& what) { return Error(absl::StatusCode::kResourceExhausted, what); }

// About a gigabyte as numbers: a small file may say that it is huge.
constexpr int64_t kMostPixels = int64_t{1} << 27;

// Samples as a file stores them, row by row.
struct Image {
  int64_t height = 0;
  int64_t width = 0;
  int channels = 0;  // 1: gray, 2: gray and alpha, 3: RGB, 4: RGB and alpha
  int bytes = 1;     // of each sample
  std::vector<uint8_t> samples;
};

void Reserve(const std::string& path, Image& image) {
  if (image.height <= 0 || image.width <= 0 || image.height > kMostPixels / image.width) {
    throw InvalidArgument(absl::StrCat(path, " is an image of ", image.width, " by ", image.height,
                                       " pixels, which is more than can be read here"));
  }
  image.samples.resize(image.height * image.width * image.channels * image.bytes);
}

// Reads PNG. libpng leaves a call by longjmp where the file is damaged: what does so has no objects of C++ of its own.
class PngReader {
 public:
  explicit PngReader(const std::string& bytes) : bytes_(bytes) {
    png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, this, OnError, OnWarning);
    if (png_ != nullptr) info_ = png_create_info_struct(png_);
    if (info_ == nullptr) throw OutOfMemory("the reader of PNG cannot be started");
    png_set_read_fn(png_, this, OnRead);
  }
  ~PngReader() { png_destroy_read_struct(&png_, info_ == nullptr ? nullptr : &info_, nullptr); }
  PngReader(const PngReader&) = delete;
  PngReader& operator=(const PngReader&) = delete;

  Image Read(const std::string& path) {
    Image image;
    if (!ReadHead()) throw Damaged(path);
    image.height = png_get_image_height(png_, info_);
    image.width = png_get_image_width(png_, info_);
    image.channels = png_get_channels(png_, info_);
    image.bytes = png_get_bit_depth(png_, info_) == 16 ? 2 : 1;
    Reserve(path, image);
    std::vector<png_bytep> rows(image.height);
    const size_t stride = image.samples.size() / image.height;
    for (size_t row = 0; row < rows.size(); ++row) rows[row] = image.samples.data() + row * stride;
    if (!ReadRows(rows.data())) throw Damaged(path);
    return image;
  }

 private:
  static void OnError(png_structp png, png_const_charp message) {
    auto* self = static_cast<PngReader*>(png_get_error_ptr(png));
    std::strncpy(self->message_, message, sizeof(self->message_) - 1);
    png_longjmp(png, 1);
  }
  static void OnWarning(png_structp, png_const_charp) {}
  static void OnRead(png_structp png, png_bytep to, size_t size) {
    auto* self = static_cast<PngReader*>(png_get_io_ptr(png));
    if (size > self->bytes_.size() - self->at_) png_error(png, "it ends too early");
    std::memcpy(to, self->bytes_.data() + self->at_, size);
    self->at_ += size;
  }

  // Palettes and few bits become 8 bits a sample, transparent colours an alpha channel.
  bool ReadHead() {
    if (setjmp(png_jmpbuf(png_)) != 0) return false;
    png_read_info(png_, info_);
    png_set_expand(png_);
    const uint16_t one = 1;
    if (*reinterpret_cast<const uint8_t*>(&one) == 1) png_set_swap(png_);
    png_set_interlace_handling(png_);
    png_read_update_info(png_, info_);
    return true;
  }

  bool ReadRows(png_bytepp rows) {
    if (setjmp(png_jmpbuf(png_)) != 0) return false;
    png_read_image(png_, rows);
    png_read_end(png_, nullptr);
    return true;
  }

  Error Damaged(const std::string& path) const {
    return InvalidArgument(absl::StrCat(path, " is a damaged PNG file: ", message_));
  }

  const std::string& bytes_;
  size_t at_ = 0;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  char message_[128] = {};
};

Image ReadJpeg(const std::string& bytes, const std::string& path) {
  const std::unique_ptr<void, int (*)(tjhandle)> reader(tjInitDecompress(), tjDestroy);
  if (reader == nullptr) throw OutOfMemory("the reader of JPEG cannot be started");
  const auto damaged = [&] {
    return InvalidArgument(absl::StrCat(path, " is a damaged JPEG file: ", tjGetErrorStr2(reader.get())));
  };
  const auto* data = reinterpret_cast<const unsigned char*>(bytes.data());
  int width = 0, height = 0, subsampling = 0, colours = 0;
  if (tjDecompressHeader3(reader.get(), data, bytes.size(), &width, &height, &subsampling, &colours) != 0 ||
      width <= 0 || height <= 0) {
    throw damaged();
  }
  if (colours == TJCS_CMYK || colours == TJCS_YCCK) {
    throw InvalidArgument(absl::StrCat(path, " is in CMYK, the colours of printers; save it as RGB"));
  }
  Image image;
  image.height = height;
  image.width = width;
  image.channels = colours == TJCS_GRAY ? 1 : 3;
  Reserve(path, image);
  const int format = image.channels == 1 ? TJPF_GRAY : TJPF_RGB;
  // A warning counts as well: what is missing of a file that is cut off would be gray.
  if (tjDecompress2(reader.get(), data, bytes.size(), image.samples.data(), width, 0, height, format,
                    TJFLAG_ACCURATEDCT) != 0) {
    throw damaged();
  }
  return image;
}

// [channels, height, width] of whole samples, without alpha.
at::Tensor ToPlanes(const Image& image, const std::string& path) {
  const auto count = static_cast<int64_t>(image.samples.size()) / image.bytes;
  at::Tensor samples = at::empty({image.height, image.width, image.channels}, at::kInt);
  auto* to = samples.data_ptr<int32_t>();
  for (int64_t k = 0; k < count; ++k) {
    uint16_t wide = 0;
    if (image.bytes == 2) std::memcpy(&wide, image.samples.data() + 2 * k, 2);
    to[k] = image.bytes == 2 ? wide : image.samples[k];
  }
  at::Tensor planes = samples.permute({2, 0, 1});
  if (image.channels % 2 == 1) return planes;
  const at::Tensor alpha = planes[image.channels - 1];
  if (!alpha.eq(image.bytes == 2 ? 65535 : 255).all().item<bool>()) {
    throw InvalidArgument(absl::StrCat(path,
                                       " is transparent in places, which have no look of their own; save it on a "
                                       "background"));
  }
  return planes.slice(0, 0, image.channels - 1);
}

at::Tensor PerChannel(const std::vector<double>& numbers, int64_t channels, const char* option) {
  if (numbers.size() != 1 && static_cast<int64_t>(numbers.size()) != channels) {
    throw InvalidArgument(absl::StrCat(option, " has ", numbers.size(), " numbers, and the image has ", channels,
                                       channels == 1 ? " channel" : " channels"));
  }
  return at::tensor(numbers, at::kDouble).view({-1, 1, 1});
}

}  // namespace

bool IsImage(const std::string& bytes) {
  return absl::StartsWith(bytes, "\x89PNG\r\n\x1a\n") || absl::StartsWith(bytes, "\xff\xd8\xff");
}

TensorFile DecodeImage(const std::string& bytes, const std::string& path, const ImageOptions& options,
                       c10::ScalarType dtype) {
  const Image image = bytes[0] == '\x89' ? PngReader(bytes).Read(path) : ReadJpeg(bytes, path);
  at::Tensor planes = ToPlanes(image, path);
  if (options.channels == "gray" && planes.size(0) == 3) {
    // In whole numbers of 16 binary places, which is how images are turned gray nearly everywhere.
    planes = (planes[0].to(at::kLong) * 19595 + planes[1] * 38470 + planes[2] * 7471 + 0x8000)
                 .div(0x10000, "floor")
                 .unsqueeze(0);
  } else if (options.channels == "rgb" && planes.size(0) == 1) {
    planes = planes.expand({3, -1, -1});
  }
  at::Tensor input = planes.to(at::kDouble) / (image.bytes == 2 ? 65535.0 : 255.0);
  if (!options.mean.empty()) input = input - PerChannel(options.mean, input.size(0), "--mean");
  if (!options.std.empty()) input = input / PerChannel(options.std, input.size(0), "--std");
  TensorFile file;
  file.tensors.emplace_back("input", input.unsqueeze(0).to(dtype).contiguous());
  file.metadata = {{"kind", "image"}};
  return file;
}

}  // namespace addend::cli
