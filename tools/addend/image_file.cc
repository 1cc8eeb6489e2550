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
  int channels = 0;     // 1: gray, 2: gray and alpha, 3: RGB, 4: RGB and alpha
  int bytes = 1;        // of each sample
  int orientation = 1;  // as EXIF counts them: 1 is upright
  std::vector<uint8_t> samples;
};

void Reserve(const std::string& path, Image& image) {
  if (image.height <= 0 || image.width <= 0 || image.height > kMostPixels / image.width) {
    throw InvalidArgument(absl::StrCat(path, " is an image of ", image.width, " by ", image.height,
                                       " pixels, which is more than can be read here"));
  }
  image.samples.resize(image.height * image.width * image.channels * image.bytes);
}

// Reads little- or big-endian numbers within bounds.
class ExifBytes {
 public:
  ExifBytes(const char* data, size_t size) : data_(data), size_(size) {}

  bool big_endian = false;
  // 0 where there are no such bytes.
  uint32_t Number(size_t at, size_t bytes) const {
    if (at > size_ || bytes > size_ - at) return 0;
    uint32_t number = 0;
    for (size_t k = 0; k < bytes; ++k) {
      number = number << 8 | static_cast<uint8_t>(data_[at + (big_endian ? k : bytes - 1 - k)]);
    }
    return number;
  }

 private:
  const char* data_;
  size_t size_;
};

// Reads from a block of EXIF how the picture is turned, 1 to 8; 1, upright, where it says nothing that can be read.
int OrientationOf(const char* data, size_t size) {
  constexpr uint32_t kTag = 0x0112;
  constexpr uint32_t kShort = 3;
  ExifBytes exif(data, size);
  exif.big_endian = exif.Number(0, 2) == 0x4d4d;  // "MM", the same in either order
  if (exif.Number(2, 2) != 42) return 1;
  const size_t list = exif.Number(4, 4);
  const uint32_t count = exif.Number(list, 2);
  for (uint32_t k = 0; k < count; ++k) {
    const size_t entry = list + 2 + size_t{12} * k;
    if (exif.Number(entry, 2) != kTag) continue;
    const uint32_t value = exif.Number(entry + 8, 2);
    return exif.Number(entry + 2, 2) == kShort && value >= 1 && value <= 8 ? static_cast<int>(value) : 1;
  }
  return 1;
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
#ifdef PNG_eXIf_SUPPORTED
    png_bytep exif = nullptr;
    png_uint_32 size = 0;
    if (png_get_eXIf_1(png_, info_, &size, &exif) == PNG_INFO_eXIf) {
      image.orientation = OrientationOf(reinterpret_cast<const char*>(exif), size);
    }
#endif
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
    png_read_end(png_, info_);
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

int OrientationOfJpeg(const std::string& bytes) {
  constexpr char kExif[] = "Exif\0";
  constexpr size_t kExifSize = 6;  // with both zeros
  const auto byte = [&](size_t at) { return static_cast<uint8_t>(bytes[at]); };
  for (size_t at = 2; at + 4 <= bytes.size() && byte(at) == 0xff;) {
    const int mark = byte(at + 1);
    if (mark == 0xff) {  // fills up
      ++at;
      continue;
    }
    const size_t size = size_t{256} * byte(at + 2) + byte(at + 3);
    if (mark == 0xda || size < 2 || size > bytes.size() - at - 2) break;  // the samples begin, or it is damaged
    if (mark == 0xe1 && size >= 2 + kExifSize && bytes.compare(at + 4, kExifSize, kExif, kExifSize) == 0) {
      return OrientationOf(bytes.data() + at + 4 + kExifSize, size - 2 - kExifSize);
    }
    at += 2 + size;
  }
  return 1;
}

// Turns [channels, height, width] upright.
at::Tensor Upright(const at::Tensor& planes, int orientation) {
  switch (orientation) {
    case 2:
      return planes.flip({2});
    case 3:
      return planes.flip({1, 2});
    case 4:
      return planes.flip({1});
    case 5:
      return planes.transpose(1, 2);
    case 6:
      return planes.transpose(1, 2).flip({2});
    case 7:
      return planes.transpose(1, 2).flip({1, 2});
    case 8:
      return planes.transpose(1, 2).flip({1});
    default:
      return planes;
  }
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
  const bool png = bytes[0] == '\x89';
  const Image image = png ? PngReader(bytes).Read(path) : ReadJpeg(bytes, path);
  at::Tensor planes = Upright(ToPlanes(image, path), png ? image.orientation : OrientationOfJpeg(bytes));
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
