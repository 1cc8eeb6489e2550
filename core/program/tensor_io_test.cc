#include "core/program/tensor_io.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/complex.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/program/sha256.h"

namespace addend {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

// The message of the Error that `call` throws; fails unless it throws one with this code.
std::string MessageOf(const std::function<void()>& call, absl::StatusCode code = absl::StatusCode::kInvalidArgument) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    EXPECT_THAT(error.what(), Not(HasSubstr("\n")));
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

// The complaint about content; every one names the file.
std::string Complaint(const std::string& bytes) {
  const std::string message = MessageOf([&] { DecodeTensorFile(bytes, "models/x.bin"); });
  EXPECT_THAT(message, StartsWith("models/x.bin: "));
  return message;
}

// An empty folder that goes away with the test.
class Folder {
 public:
  Folder() {
    std::string pattern = testing::TempDir() + "/tensor_io_XXXXXX";
    path_ = mkdtemp(&pattern[0]);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(path_)) names.push_back(entry.path().filename());
    return names;
  }

 private:
  std::string path_;
};

std::string Content(const std::string& path) {
  std::ostringstream out;
  out << std::ifstream(path, std::ios::binary).rdbuf();
  return out.str();
}

template <typename T>
std::string Bytes(const std::vector<T>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

std::string Npy(const std::string& header, const std::string& data, int version = 1) {
  const auto size = static_cast<uint32_t>(header.size());
  std::string bytes = "\x93NUMPY";
  bytes += static_cast<char>(version);
  bytes += '\0';
  bytes.append(reinterpret_cast<const char*>(&size), version == 1 ? 2 : 4);
  return bytes + header + data;
}

std::string NpyOf(const std::string& descr, const std::string& shape, const std::string& data, bool fortran = false,
                  int version = 1) {
  return Npy(absl::StrCat("{'descr': '", descr, "', 'fortran_order': ", fortran ? "True" : "False",
                          ", 'shape': ", shape, ", }\n"),
             data, version);
}

std::string Safetensors(const std::string& header, const std::string& data) {
  const uint64_t size = header.size();
  return std::string(reinterpret_cast<const char*>(&size), 8) + header + data;
}

// One tensor named "a".
std::string SafetensorsOf(const std::string& dtype, const std::string& shape, const std::string& offsets,
                          const std::string& data) {
  return Safetensors(
      absl::StrCat(R"({"a":{"dtype":")", dtype, R"(","shape":)", shape, R"(,"data_offsets":)", offsets, "}}"), data);
}

bool Same(const at::Tensor& a, const at::Tensor& b) {
  return a.scalar_type() == b.scalar_type() && a.sizes() == b.sizes() && a.equal(b);
}

const at::ScalarType kAllDtypes[] = {at::kDouble, at::kFloat, at::kHalf, at::kBFloat16, at::kLong,
                                     at::kInt,    at::kShort, at::kChar, at::kByte,     at::kBool};

// ---------------------------------------------------------------------------------------------------------- .npy

// Byte for byte what numpy 1.24 writes for np.array([[1.5, -2, 3], [4, 5, 6]], dtype="<f4").
TEST(NpyTest, ReadsWhatNumpyWrites) {
  const std::string header =
      "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }" + std::string(58, ' ') + "\n";
  const std::string bytes =
      std::string("\x93NUMPY\x01\x00v\x00", 10) + header +
      std::string("\x00\x00\xc0?\x00\x00\x00\xc0\x00\x00@@\x00\x00\x80@\x00\x00\xa0@\x00\x00\xc0@", 24);
  ASSERT_EQ(bytes.size(), 152u);
  const TensorFile file = DecodeTensorFile(bytes, "x.npy");
  ASSERT_EQ(file.tensors.size(), 1u);
  EXPECT_EQ(file.tensors[0].first, "");
  EXPECT_TRUE(file.metadata.empty());
  EXPECT_TRUE(Same(*file.Find(""), at::tensor({1.5f, -2.f, 3.f, 4.f, 5.f, 6.f}).view({2, 3})));
  EXPECT_EQ(file.Find("x"), nullptr);
}

// Likewise for np.asfortranarray(np.array([[1, 2, 3], [4, 5, 6]], dtype="<i2")).
TEST(NpyTest, ReadsFortranOrder) {
  const std::string header = "{'descr': '<i2', 'fortran_order': True, 'shape': (2, 3), }" + std::string(59, ' ') + "\n";
  const std::string bytes = std::string("\x93NUMPY\x01\x00v\x00", 10) + header +
                            std::string("\x01\x00\x04\x00\x02\x00\x05\x00\x03\x00\x06\x00", 12);
  ASSERT_EQ(bytes.size(), 140u);
  const at::Tensor tensor = DecodeTensorFile(bytes, "x.npy").tensors[0].second;
  EXPECT_TRUE(tensor.is_contiguous());
  EXPECT_TRUE(Same(tensor, at::arange(1, 7, at::kShort).view({2, 3})));
}

TEST(NpyTest, ReadsFortranOrderOfThreeDimensions) {
  const at::Tensor expected = at::arange(24, at::kInt).view({2, 3, 4});
  const at::Tensor stored = expected.permute({2, 1, 0}).contiguous();
  const std::string data(static_cast<const char*>(stored.data_ptr()), 24 * 4);
  EXPECT_TRUE(Same(DecodeTensorFile(NpyOf("<i4", "(2, 3, 4)", data, true), "x").tensors[0].second, expected));
}

TEST(NpyTest, ReadsEveryDtype) {
  const std::pair<const char*, at::ScalarType> dtypes[] = {
      {"<f2", at::kHalf}, {"<f4", at::kFloat}, {"<f8", at::kDouble}, {"|i1", at::kChar}, {"<i2", at::kShort},
      {"<i4", at::kInt},  {"<i8", at::kLong},  {"|u1", at::kByte},   {"|b1", at::kBool}};
  for (const auto& dtype : dtypes) {
    const at::Tensor expected = at::tensor({1, 0, 1}).to(dtype.second);
    const std::string data(static_cast<const char*>(expected.data_ptr()), expected.nbytes());
    EXPECT_TRUE(Same(DecodeTensorFile(NpyOf(dtype.first, "(3,)", data), "x").tensors[0].second, expected))
        << dtype.first;
  }
}

TEST(NpyTest, ReadsEveryVersionAndRank) {
  const std::string one = Bytes<float>({2.5f});
  for (const int version : {1, 2, 3}) {
    EXPECT_TRUE(
        Same(DecodeTensorFile(NpyOf("<f4", "(1,)", one, false, version), "x").tensors[0].second, at::tensor({2.5f})));
  }
  EXPECT_EQ(DecodeTensorFile(NpyOf("<f4", "()", one), "x").tensors[0].second.dim(), 0);
  EXPECT_EQ(DecodeTensorFile(NpyOf("<f4", "()", one, true), "x").tensors[0].second.dim(), 0);
  EXPECT_EQ(DecodeTensorFile(NpyOf("<f4", "(0, 7)", ""), "x").tensors[0].second.sizes(), at::IntArrayRef({0, 7}));
  EXPECT_EQ(DecodeTensorFile(NpyOf("<f4", "(1L, 1L)", one), "x").tensors[0].second.sizes(), at::IntArrayRef({1, 1}));
}

TEST(NpyTest, EveryTruncationIsRefused) {
  const std::string bytes = NpyOf("<f4", "(2,)", Bytes<float>({1, 2}));
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_THAT(Complaint(bytes.substr(0, size)), HasSubstr("truncated")) << size;
  }
  EXPECT_THAT(Complaint(bytes + "x"), HasSubstr("takes 8 bytes, but 9 follow the header"));
}

TEST(NpyTest, RefusesDtypes) {
  const std::string data(16, '\0');
  EXPECT_THAT(Complaint(NpyOf(">f4", "(4,)", data)),
              HasSubstr("big-endian data (>f4) is not supported; save it as <f4"));
  EXPECT_THAT(Complaint(NpyOf("|O", "(2,)", data)), HasSubstr("pickled Python objects are not supported"));
  EXPECT_THAT(Complaint(NpyOf("<c8", "(2,)", data)), HasSubstr("dtype <c8 is not supported; use one of f2, f4"));
  EXPECT_THAT(Complaint(NpyOf("<U4", "(1,)", data)), HasSubstr("dtype <U4 is not supported"));
  EXPECT_THAT(Complaint(NpyOf("|f4", "(4,)", data)), HasSubstr("dtype |f4 is not supported"));
  EXPECT_THAT(Complaint(NpyOf("<", "(4,)", data)), HasSubstr("dtype < is not supported"));
  EXPECT_THAT(Complaint(NpyOf("", "(4,)", data)), HasSubstr("is not supported"));
  EXPECT_THAT(Complaint(Npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (4,), }", data)),
              HasSubstr("structured"));
  EXPECT_THAT(Complaint(NpyOf("|b1", "(2,)", std::string("\x01\x02"))), HasSubstr("boolean byte 2 is neither 0 nor 1"));
}

TEST(NpyTest, RefusesShapes) {
  EXPECT_THAT(Complaint(NpyOf("<f4", "(-1,)", "")), HasSubstr("shape [-1] has a negative size"));
  EXPECT_THAT(Complaint(NpyOf("<f4", "(4294967296, 4294967296)", "")), HasSubstr("is too large for any memory"));
  EXPECT_THAT(Complaint(NpyOf("<f8", "(2305843009213693952,)", "")), HasSubstr("is too large for any memory"));
  EXPECT_THAT(Complaint(NpyOf("<f4", "(0, 4294967296, 4294967296)", "")), HasSubstr("is too large for any memory"));
  EXPECT_THAT(Complaint(NpyOf("<f4", "(99999999999999999999,)", "")), HasSubstr("is too large"));
  EXPECT_THAT(Complaint(NpyOf("<f4", "(1152921504606846976,)", "1234")), HasSubstr("truncated"));
  std::string deep = "(";
  for (int i = 0; i < 65; ++i) deep += "1, ";
  EXPECT_THAT(Complaint(NpyOf("<f4", deep + ")", "1234")), HasSubstr("65 dimensions; at most 64"));
}

TEST(NpyTest, RefusesHeaders) {
  EXPECT_THAT(Complaint(NpyOf("<f4", "(1,)", "1234", false, 4)), HasSubstr("version 4 is not supported"));
  EXPECT_THAT(Complaint(NpyOf("<f4", "(1,)", "1234", false, 0)), HasSubstr("version 0 is not supported"));
  EXPECT_THAT(Complaint(Npy("{'descr': '<f4', 'fortran_order': False}", "")), HasSubstr("'shape' is missing"));
  EXPECT_THAT(Complaint(Npy("{'descr': '<f4', 'descr': '<f4'}", "")), HasSubstr("'descr' occurs twice"));
  EXPECT_THAT(Complaint(Npy("{'extra\n': 1}", "")), HasSubstr("'extra\\n' is unknown"));
  EXPECT_THAT(Complaint(Npy("{'descr': '<f4", "")), HasSubstr("a string has no end"));
  EXPECT_THAT(Complaint(Npy("{'descr': '<f4', 'fortran_order': None, 'shape': ()}", "")), HasSubstr("True nor False"));
  EXPECT_THAT(Complaint(NpyOf("<f4", "(a,)", "")), HasSubstr("not a tuple of integers"));
  EXPECT_THAT(Complaint(NpyOf("<f4", "4", "")), HasSubstr("'(' is missing"));
  EXPECT_THAT(Complaint(Npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} 1", "1234")),
              HasSubstr("something follows it"));
  EXPECT_THAT(Complaint(Npy("", "")), HasSubstr("'{' is missing"));
}

// -------------------------------------------------------------------------------------------------- .safetensors

TEST(SafetensorsTest, RoundTripsEveryDtype) {
  for (const at::ScalarType dtype : kAllDtypes) {
    TensorFile file;
    file.tensors.emplace_back("x", at::tensor({1, 0, 1, 1, 0, 1}).to(dtype).view({2, 1, 3}));
    const TensorFile back = DecodeTensorFile(EncodeSafetensors(file), "x");
    ASSERT_EQ(back.tensors.size(), 1u);
    EXPECT_TRUE(Same(*back.Find("x"), file.tensors[0].second)) << at::toString(dtype);
  }
}

TEST(SafetensorsTest, RoundTripsNamesShapesAndMetadata) {
  TensorFile file;
  file.tensors.emplace_back("z", at::tensor({1.f, 2.f}));
  file.tensors.emplace_back("", at::tensor({3.f}).squeeze());
  file.tensors.emplace_back("a \"quoted\"\n\xc3\xa9", at::zeros({0, 3}));
  file.tensors.emplace_back("m", at::tensor({4.f, 5.f}));
  file.metadata = {{"format", "pt"}, {"", "empty"}};
  const TensorFile back = DecodeTensorFile(EncodeSafetensors(file), "x");
  EXPECT_EQ(back.metadata, file.metadata);
  ASSERT_EQ(back.tensors.size(), 4u);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(back.tensors[i].first, file.tensors[i].first);
    EXPECT_TRUE(Same(back.tensors[i].second, file.tensors[i].second));
  }
}

TEST(SafetensorsTest, RoundTripsNothing) {
  const TensorFile back = DecodeTensorFile(EncodeSafetensors(TensorFile()), "x");
  EXPECT_TRUE(back.tensors.empty());
  EXPECT_TRUE(back.metadata.empty());
}

TEST(SafetensorsTest, AlignsHeaderAndTensors) {
  TensorFile file;
  file.tensors.emplace_back("u8", at::ones({3}, at::kByte));
  file.tensors.emplace_back("f64", at::ones({1}, at::kDouble));
  file.tensors.emplace_back("f16", at::ones({1}, at::kHalf));
  const std::string bytes = EncodeSafetensors(file);
  uint64_t header_size = 0;
  std::memcpy(&header_size, bytes.data(), 8);
  EXPECT_EQ(header_size % 8, 0u);
  const TensorFile back = DecodeTensorFile(bytes, "x");
  std::vector<std::string> names;
  for (const auto& entry : back.tensors) names.push_back(entry.first);
  EXPECT_THAT(names, ElementsAre("f64", "f16", "u8"));
}

TEST(SafetensorsTest, WritesViewsAsTheyRead) {
  const at::Tensor base = at::arange(6, at::kFloat).view({2, 3});
  TensorFile file;
  file.tensors.emplace_back("t", base.t());
  file.tensors.emplace_back("n", base._neg_view());
  const TensorFile back = DecodeTensorFile(EncodeSafetensors(file), "x");
  EXPECT_TRUE(Same(*back.Find("t"), base.t()));
  EXPECT_TRUE(Same(*back.Find("n"), base.neg()));
}

// Laid out by hand after the format's description.
TEST(SafetensorsTest, ReadsFilesInTheOrderOfTheirData) {
  const std::string bytes =
      Safetensors(R"({"a":{"dtype":"I32","shape":[2],"data_offsets":[4,12]},)"
                  R"("b":{"dtype":"BOOL","shape":[2,2],"data_offsets":[0,4]},"__metadata__":{"k":"v"}}   )",
                  std::string("\x01\x00\x01\x00", 4) + Bytes<int32_t>({7, -8}));
  const TensorFile file = DecodeTensorFile(bytes, "x");
  ASSERT_EQ(file.tensors.size(), 2u);
  EXPECT_EQ(file.tensors[0].first, "b");
  EXPECT_TRUE(Same(*file.Find("a"), at::tensor({7, -8}, at::kInt)));
  EXPECT_TRUE(Same(*file.Find("b"), at::tensor({1, 0, 1, 0}).to(at::kBool).view({2, 2})));
  EXPECT_EQ(file.metadata.at("k"), "v");
}

TEST(SafetensorsTest, EveryTruncationIsRefused) {
  const std::string bytes = SafetensorsOf("F32", "[2]", "[0,8]", Bytes<float>({1, 2}));
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_THAT(Complaint(bytes.substr(0, size)), HasSubstr("truncated")) << size;
  }
}

TEST(SafetensorsTest, RefusesHeaders) {
  std::string huge = Safetensors("{}", "");
  huge[7] = '\x40';
  EXPECT_THAT(Complaint(huge), HasSubstr("header is too large: 4611686018427387906 bytes; at most 100000000"));
  for (const char* header : {"{", "{\"a\"}", "[1,2]", "nonsense", "{}}", "{\"\xff\":1}"}) {
    EXPECT_THAT(Complaint(Safetensors(header, "")), HasSubstr("header is not a JSON object")) << header;
  }
  // Deep nesting must not exhaust the stack.
  const int depth = 1'000'000;
  EXPECT_THAT(Complaint(Safetensors("{\"a\":" + std::string(depth, '['), "")), HasSubstr("not a JSON object"));
  EXPECT_THAT(Complaint(Safetensors("{\"a\":" + std::string(depth, '[') + std::string(depth, ']') + "}", "")),
              HasSubstr("dtype is missing"));
  EXPECT_THAT(Complaint(Safetensors(R"({"a":1,"a":2})", "")), HasSubstr("header has \"a\" twice"));
  EXPECT_THAT(Complaint(Safetensors(R"({"a":1})", "")), HasSubstr("tensor a: dtype is missing"));
  EXPECT_THAT(Complaint(Safetensors(R"({"a\n":{"dtype":"F32"}})", "")), HasSubstr("tensor a\\n: shape is missing"));
  EXPECT_THAT(Complaint(Safetensors(R"({"a":{"dtype":"F32","shape":[]}})", "")), HasSubstr("data_offsets is missing"));
  EXPECT_THAT(Complaint(Safetensors(R"({"__metadata__":[]})", "")), HasSubstr("__metadata__ is not a JSON object"));
  EXPECT_THAT(Complaint(Safetensors(R"({"__metadata__":{"k":1}})", "")), HasSubstr("__metadata__ k is not a string"));
}

TEST(SafetensorsTest, RefusesOffsets) {
  const std::string data(8, '\0');
  EXPECT_THAT(Complaint(SafetensorsOf("F32", "[2]", "[0,16]", data)), HasSubstr("[0, 16] exceed the 8 bytes of data"));
  EXPECT_THAT(Complaint(SafetensorsOf("F32", "[2]", "[8,0]", data)), HasSubstr("[8, 0] end before they begin"));
  EXPECT_THAT(Complaint(SafetensorsOf("F32", "[1]", "[0,8]", data)),
              HasSubstr("hold 8 bytes, but shape [1] of F32 takes 4"));
  EXPECT_THAT(Complaint(SafetensorsOf("F32", "[1]", "[4,8]", data)), HasSubstr("leave a gap"));
  EXPECT_THAT(Complaint(SafetensorsOf("F32", "[1]", "[0,4]", data)),
              HasSubstr("the tensors end at 4, but there are 8 bytes"));
  for (const char* offsets : {"[-1,8]", "[0]", "[0,8,9]", "0", "[0.5,8]", "[0,\"8\"]", "null"}) {
    EXPECT_THAT(Complaint(SafetensorsOf("F32", "[2]", offsets, data)), HasSubstr("data_offsets is not a list of two"));
  }
  EXPECT_THAT(Complaint(Safetensors(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
                                    R"("b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
                                    data)),
              HasSubstr("tensor b: data_offsets [4, 8] overlap tensor a"));
}

TEST(SafetensorsTest, RefusesShapesAndDtypes) {
  const std::string data(8, '\0');
  EXPECT_THAT(Complaint(SafetensorsOf("F32", "[-2]", "[0,8]", data)), HasSubstr("shape [-2] has a negative size"));
  EXPECT_THAT(Complaint(SafetensorsOf("F32", "[4294967296,4294967296]", "[0,8]", data)), HasSubstr("too large"));
  EXPECT_THAT(Complaint(SafetensorsOf("F32", "[4294967296,4294967296,0]", "[0,0]", "")), HasSubstr("too large"));
  EXPECT_THAT(Complaint(SafetensorsOf("F32", "[18446744073709551615]", "[0,8]", data)), HasSubstr("too large"));
  EXPECT_THAT(Complaint(SafetensorsOf("F32", "[2.0]", "[0,8]", data)), HasSubstr("not a list of integers"));
  EXPECT_THAT(Complaint(SafetensorsOf("F32", "2", "[0,8]", data)), HasSubstr("shape is not a list"));
  EXPECT_THAT(Complaint(SafetensorsOf("U64", "[1]", "[0,8]", data)),
              HasSubstr("tensor a: dtype \"U64\" is not supported; use one of F64, F32, F16, BF16"));
  EXPECT_THAT(Complaint(SafetensorsOf("BOOL", "[8]", "[0,8]", std::string(8, '\x7f'))), HasSubstr("boolean byte 127"));
}

TEST(SafetensorsTest, RefusesToWriteWhatItCannotHold) {
  const auto encode = [](const std::string& name, const at::Tensor& tensor) {
    return MessageOf([&] {
      TensorFile file;
      file.tensors.emplace_back("ok", at::zeros({1}));
      file.tensors.emplace_back(name, tensor);
      EncodeSafetensors(file);
    });
  };
  EXPECT_EQ(encode("ok", at::zeros({1})), "two tensors are named ok; rename one");
  EXPECT_THAT(encode("__metadata__", at::zeros({1})), HasSubstr("no tensor may be named __metadata__"));
  EXPECT_THAT(encode("x", at::Tensor()), HasSubstr("tensor x is undefined"));
  EXPECT_THAT(encode("x", at::complex(at::zeros({1}), at::zeros({1}))), HasSubstr("tensor x has dtype ComplexFloat"));
  EXPECT_THAT(encode("x", at::ones({1}).to_sparse()), HasSubstr("tensor x is not dense"));
  EXPECT_THAT(encode("\xff", at::zeros({1})), HasSubstr("must be UTF-8"));
}

TEST(DecodeTensorFileTest, SaysWhatIsExpected) {
  for (const std::string& bytes : {std::string(), std::string("PK\x03\x04 a zip archive, such as .npz or .pt"),
                                   std::string("plain text that is no tensor"), std::string(64, '\0')}) {
    EXPECT_THAT(Complaint(bytes), HasSubstr("a .npy or .safetensors file is expected"));
  }
}

// Any damage to one byte is either noticed or harmless.
TEST(DecodeTensorFileTest, SurvivesDamage) {
  for (const std::string& good :
       {NpyOf("<f4", "(2, 1)", Bytes<float>({1, 2})), SafetensorsOf("BOOL", "[2,4]", "[0,8]", std::string(8, '\1'))}) {
    for (size_t i = 0; i < good.size(); ++i) {
      for (int byte = 0; byte < 256; byte += 3) {
        std::string bad = good;
        bad[i] = static_cast<char>(byte);
        try {
          DecodeTensorFile(bad, "x");
        } catch (const Error& error) {
          EXPECT_EQ(error.code(), absl::StatusCode::kInvalidArgument);
        }
      }
    }
  }
}

// --------------------------------------------------------------------------------------------------------- files

TEST(ReadTensorFileTest, ReadsWhatWasWrittenWhateverItsName) {
  const Folder folder;
  TensorFile file;
  file.tensors.emplace_back("w", at::arange(5, at::kDouble));
  WriteTensorFile(folder / "w.npy", file);
  EXPECT_TRUE(Same(*ReadTensorFile(folder / "w.npy").Find("w"), file.tensors[0].second));
  WriteFileWhole(folder / "n.safetensors", NpyOf("<f4", "(1,)", Bytes<float>({3})));
  EXPECT_TRUE(Same(*ReadTensorFile(folder / "n.safetensors").Find(""), at::tensor({3.f})));
}

TEST(ReadTensorFileTest, SaysWhichFileIsWrong) {
  const Folder folder;
  const std::string missing = folder / "missing.npy";
  EXPECT_EQ(MessageOf([&] { ReadTensorFile(missing); }, absl::StatusCode::kNotFound),
            "cannot open " + missing + ": No such file or directory");
  EXPECT_EQ(MessageOf([&] { ReadTensorFile(folder.path()); }),
            "cannot read " + folder.path() + ": it is a folder; name a file");
  WriteFileWhole(folder / "text", "some text");
  EXPECT_THAT(MessageOf([&] { ReadTensorFile(folder / "text"); }), StartsWith((folder / "text") + ": "));
  MessageOf([&] { ReadTensorFile(folder / "text/below"); }, absl::StatusCode::kNotFound);
}

TEST(StoredRowsTest, EveryRangeIsThatOfTheWholeTensor) {
  const Folder folder;
  TensorFile file;
  file.tensors.emplace_back("input", at::arange(35, at::kFloat).reshape({7, 5}));
  file.tensors.emplace_back("ids", at::arange(14, at::kLong).reshape({7, 2}));
  file.tensors.emplace_back("flags", at::tensor({1, 0, 1, 1, 0, 0, 1}).to(at::kBool));
  file.metadata["kind"] = "table";
  WriteTensorFile(folder / "rows.safetensors", file);
  for (const auto& [name, whole] : file.tensors) {
    const StoredRows rows({folder / "rows.safetensors", name}, {"input"});
    EXPECT_EQ(rows.rows(), 7);
    EXPECT_EQ(rows.dtype(), whole.scalar_type());
    EXPECT_EQ(rows.metadata().at("kind"), "table");
    for (int64_t first = 0; first <= 7; ++first) {
      for (int64_t count = 0; first + count <= 7; ++count) {
        EXPECT_TRUE(rows.Read(first, count).equal(whole.narrow(0, first, count))) << name << first << count;
      }
    }
    EXPECT_THAT(MessageOf([&] { rows.Read(5, 3); }), HasSubstr("has 7, counted from 0"));
    EXPECT_THAT(MessageOf([&] { rows.Read(-1, 1); }), HasSubstr("has 7, counted from 0"));
  }
  // The usual name, where none is given.
  EXPECT_EQ(StoredRows({folder / "rows.safetensors", ""}, {"input"}).shape(), (std::vector<int64_t>{7, 5}));
}

TEST(StoredRowsTest, ReadsNpyAndRefusesWhatHasNoRows) {
  const Folder folder;
  const std::vector<float> numbers = {0, 1, 2, 3, 4, 5};
  WriteFileWhole(folder / "rows.npy", NpyOf("<f4", "(3, 2)", Bytes(numbers)));
  EXPECT_TRUE(StoredRows({folder / "rows.npy", ""}, {})
                  .Read(1, 2)
                  .equal(at::tensor({2., 3., 4., 5.}, at::kFloat).reshape({2, 2})));
  WriteFileWhole(folder / "turned.npy", NpyOf("<f4", "(3, 2)", Bytes(numbers), /*fortran=*/true));
  EXPECT_THAT(MessageOf([&] { StoredRows({folder / "turned.npy", ""}, {}); }), HasSubstr("Fortran order"));
  WriteFileWhole(folder / "one.npy", NpyOf("<f4", "()", Bytes(std::vector<float>{1})));
  EXPECT_THAT(MessageOf([&] { StoredRows({folder / "one.npy", ""}, {}); }), HasSubstr("has no rows"));
  const StoredRows rows({folder / "rows.npy", ""}, {});
  WriteFileWhole(folder / "rows.npy", NpyOf("<f4", "(3, 2)", Bytes(numbers)).substr(0, 90));
  EXPECT_THAT(MessageOf([&] { rows.Read(2, 1); }), HasSubstr("became shorter"));
}

// Whatever is cut off or flipped in a header is refused, as when the file is read as a whole.
TEST(StoredRowsTest, RefusesWhatReadersOfWholeFilesRefuse) {
  const Folder folder;
  TensorFile file;
  file.tensors.emplace_back("input", at::arange(6, at::kFloat).reshape({3, 2}));
  for (const std::string& bytes :
       {EncodeSafetensors(file), NpyOf("<f4", "(3, 2)", Bytes(std::vector<float>{0, 1, 2, 3, 4, 5}))}) {
    for (size_t size = 0; size < bytes.size(); ++size) {
      WriteFileWhole(folder / "rows", bytes.substr(0, size));
      const auto whole = MessageOf([&] { ReadTensorFile(folder / "rows"); });
      EXPECT_EQ(MessageOf([&] { StoredRows({folder / "rows", ""}, {"input"}); }), whole) << size;
      EXPECT_NE(whole, "(no error)");
    }
  }
}

TEST(WriteTensorFileTest, SaysWhichFileCannotBeWritten) {
  const Folder folder;
  TensorFile file;
  file.tensors.emplace_back("x", at::Tensor());
  EXPECT_EQ(MessageOf([&] { WriteTensorFile(folder / "x", file); }),
            "cannot write " + (folder / "x") + ": tensor x is undefined and cannot be saved");
  EXPECT_TRUE(folder.Names().empty());
}

TEST(WriteFileWholeTest, CreatesAndReplaces) {
  const Folder folder;
  const std::string bytes("a\0b\n", 4);
  WriteFileWhole(folder / "f", "something longer");
  WriteFileWhole(folder / "f", bytes);
  EXPECT_EQ(Content(folder / "f"), bytes);
  WriteFileWhole(folder / "f", "");
  EXPECT_EQ(Content(folder / "f"), "");
  // A name of the greatest length: the temporary file's must not be longer.
  WriteFileWhole(folder / std::string(255, 'n'), bytes);
  EXPECT_EQ(folder.Names().size(), 2u);
}

TEST(WriteFileWholeTest, KeepsPermissionsAndLinks) {
  const Folder folder;
  WriteFileWhole(folder / "f", "old");
  ASSERT_EQ(::chmod((folder / "f").c_str(), 0640), 0);
  ASSERT_EQ(::symlink("f", (folder / "link").c_str()), 0);
  WriteFileWhole(folder / "link", "new");
  EXPECT_EQ(Content(folder / "f"), "new");
  struct stat status = {};
  ASSERT_EQ(::lstat((folder / "link").c_str(), &status), 0);
  EXPECT_TRUE(S_ISLNK(status.st_mode));
  ASSERT_EQ(::stat((folder / "f").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0640u);
}

TEST(WriteFileWholeTest, FailsWithoutATrace) {
  const Folder folder;
  const std::string below = folder / "missing/f";
  EXPECT_EQ(MessageOf([&] { WriteFileWhole(below, "x"); }, absl::StatusCode::kNotFound),
            "cannot write " + below + ": No such file or directory");
  EXPECT_EQ(MessageOf([&] { WriteFileWhole(folder.path(), "x"); }),
            "cannot write " + folder.path() + ": Is a directory");
  const std::string too_long = folder / std::string(256, 'n');
  EXPECT_EQ(MessageOf([&] { WriteFileWhole(too_long, "x"); }), "cannot write " + too_long + ": File name too long");
  MessageOf([&] { WriteFileWhole("", "x"); }, absl::StatusCode::kNotFound);
  EXPECT_TRUE(folder.Names().empty());
}

// Root may write everywhere, so that this test becomes nobody for a moment where it runs as root.
TEST(WriteFileWholeTest, RespectsReadOnlyFoldersAndFiles) {
  const Folder folder;
  WriteFileWhole(folder / "f", "old");
  std::filesystem::create_directory(folder / "open");
  WriteFileWhole(folder / "open/f", "old");
  ASSERT_EQ(::chmod((folder / "open/f").c_str(), 0444), 0);
  ASSERT_EQ(::chmod((folder / "open").c_str(), 0777), 0);
  ASSERT_EQ(::chmod(folder.path().c_str(), 0555), 0);
  const bool root = ::geteuid() == 0;
  if (root && ::seteuid(65534) != 0) GTEST_SKIP() << "root cannot become another user here";

  std::vector<std::string> messages;
  for (const char* name : {"f", "new", "open/f"}) {
    messages.push_back(MessageOf([&] { WriteFileWhole(folder / name, "x"); }));
  }
  if (root) {
    ASSERT_EQ(::seteuid(0), 0);
  }
  ASSERT_EQ(::chmod(folder.path().c_str(), 0755), 0);

  for (const std::string& message : messages) EXPECT_THAT(message, EndsWith(": Permission denied"));
  EXPECT_EQ(Content(folder / "f"), "old");
  EXPECT_EQ(Content(folder / "open/f"), "old");
  EXPECT_EQ(folder.Names().size(), 2u);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder / "open"), {}), 1);
}

TEST(WriteFileWholeTest, WritesDirectlyToWhatIsNoRegularFile) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  WriteFileWhole(absl::StrCat("/dev/fd/", ends[1]), "through a pipe");
  char buffer[32];
  EXPECT_EQ(std::string(buffer, static_cast<size_t>(::read(ends[0], buffer, sizeof(buffer)))), "through a pipe");
  ::close(ends[0]);
  ::close(ends[1]);
  WriteFileWhole("/dev/null", "x");
}

// Writes as to /dev/stdout under a redirection: the file stays the one that is open, and keeps what is in it.
TEST(WriteFileWholeTest, AppendsToAnOpenFileUnderDev) {
  const Folder folder;
  std::FILE* file = std::fopen((folder / "f").c_str(), "w");
  ASSERT_NE(file, nullptr);
  std::fputs("before,", file);
  std::fflush(file);
  WriteFileWhole(absl::StrCat("/dev/fd/", ::fileno(file)), "after");
  std::fclose(file);
  EXPECT_EQ(Content(folder / "f"), "before,after");
  EXPECT_THAT(folder.Names(), ElementsAre("f"));
}

TEST(WriteFileWholeTest, SaysThatTheDeviceIsFull) {
  if (::access("/dev/full", W_OK) != 0) GTEST_SKIP() << "/dev/full is missing";
  EXPECT_EQ(MessageOf([] { WriteFileWhole("/dev/full", "x"); }), "cannot write /dev/full: No space left on device");
}

TEST(Sha256OfFileTest, EqualsThatOfItsBytes) {
  const Folder folder;
  const std::string bytes(3'000'000, '\x5a');  // more than one piece
  WriteFileWhole(folder / "f", bytes);
  EXPECT_EQ(Sha256OfFile(folder / "f"), Sha256(bytes));
  EXPECT_THAT(MessageOf([&] { Sha256OfFile(folder / "missing"); }, absl::StatusCode::kNotFound),
              AllOf(StartsWith("cannot open "), EndsWith(": No such file or directory")));
  EXPECT_THAT(MessageOf([&] { Sha256OfFile(folder.path()); }), HasSubstr("it is a folder"));
}

}  // namespace
}  // namespace addend
