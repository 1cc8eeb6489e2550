// Tensors through the C interface: the caller's memory, DLPack, files.
#include <gmock/gmock.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <thread>

#include "c_api/dlpack_abi.h"
#include "c_api/testing.h"

namespace addend::api {
namespace {

using c_api::dlpack::Managed;
using c_api::dlpack::ManagedVersioned;

class TensorTest : public CApiTest {};

void CountRelease(void* payload) { ++*static_cast<int*>(payload); }

TEST_F(TensorTest, WrapSharesMemoryAndGivesItBackOnce) {
  std::vector<float> numbers = {1, 2, 3, 4, 5, 6};
  int released = 0;
  const int64_t dims[] = {2, 3};
  addend_tensor* tensor = nullptr;
  ExpectOk(
      addend_tensor_wrap(numbers.data(), 24, ADDEND_FLOAT32, dims, 2, nullptr, 0, CountRelease, &released, &tensor));
  EXPECT_EQ(addend_tensor_data(tensor), numbers.data());
  numbers[4] = 7;
  EXPECT_EQ(Numbers(Tensor::Copy<float>({1, 2, 3, 4, 7, 6}, {2, 3})), (std::vector<double>{1, 2, 3, 4, 7, 6}));
  addend_tensor* same = nullptr;
  ExpectOk(addend_tensor_to(tensor, 0, nullptr, &same));
  EXPECT_EQ(addend_tensor_data(same), numbers.data());
  addend_tensor_release(tensor);
  EXPECT_EQ(released, 0);  // `same` needs the memory
  EXPECT_EQ(static_cast<const float*>(addend_tensor_data(same))[4], 7);
  addend_tensor_release(same);
  EXPECT_EQ(released, 1);
}

TEST_F(TensorTest, WrapTakesStrides) {
  std::vector<double> numbers = {0, 1, 2, 3, 4, 5};
  const int64_t dims[] = {3, 2};
  const int64_t strides[] = {1, 3};
  addend_tensor* made = nullptr;
  ExpectOk(addend_tensor_wrap(numbers.data(), 48, ADDEND_FLOAT64, dims, 2, strides, 2, nullptr, nullptr, &made));
  const Tensor tensor(made);
  EXPECT_EQ(addend_tensor_data(made), nullptr);  // not contiguous
  EXPECT_EQ(Numbers(tensor), (std::vector<double>{0, 3, 1, 4, 2, 5}));
}

TEST_F(TensorTest, FailuresLeaveMemoryWithTheCaller) {
  float numbers[8] = {};
  int released = 0;
  addend_tensor* tensor = nullptr;
  const auto wrap = [&](size_t size, const std::vector<int64_t>& dims, const std::vector<int64_t>& strides) {
    return Outcome(addend_tensor_wrap(numbers, size, ADDEND_FLOAT32, dims.data(), dims.size(),
                                      strides.empty() ? nullptr : strides.data(), strides.size(), CountRelease,
                                      &released, &tensor));
  };
  EXPECT_EQ(wrap(32, {2, 5}, {}).message, "buffer has 32 bytes, shape [2, 5] needs 40");
  EXPECT_EQ(wrap(32, {2, 3}, {}).message, "buffer has 32 bytes, shape [2, 3] needs 24");
  EXPECT_EQ(wrap(32, {2, 4}, {5, 1}).message, "buffer has 32 bytes, shape [2, 4] needs 36");
  EXPECT_EQ(wrap(32, {2, 4}, {4}).message, "num_strides is 1, num_dims is 2");
  EXPECT_EQ(wrap(32, {2, 4}, {-4, 1}).message, "strides hold -4; LibTorch has no negative strides");
  EXPECT_EQ(wrap(32, {2, -4}, {}).message, "dims holds -4; sizes are not negative");
  const int64_t many = int64_t{1} << 32;
  EXPECT_EQ(wrap(32, {0, many, many}, {}).message, "dims [0, 4294967296, 4294967296] need strides beyond 64 bits");
  EXPECT_EQ(wrap(32, {int64_t{1} << 40, int64_t{1} << 40}, {}).code, ADDEND_INVALID_ARGUMENT);
  EXPECT_EQ(wrap(32, {2, 4}, {INT64_MAX, INT64_MAX}).code, ADDEND_INVALID_ARGUMENT);
  EXPECT_EQ(Outcome(addend_tensor_wrap(reinterpret_cast<char*>(numbers) + 1, 24, ADDEND_FLOAT32,
                                       std::vector<int64_t>{6}.data(), 1, nullptr, 0, CountRelease, &released, &tensor))
                .message,
            "data is not aligned to the 4 bytes of an element; copy it");
  EXPECT_EQ(released, 0);
  EXPECT_EQ(tensor, nullptr);
}

TEST_F(TensorTest, EmptyTensorsAndScalars) {
  const Tensor empty = Tensor::Copy<float>({}, {0, 3});
  EXPECT_EQ(empty.sizes(), (std::vector<int64_t>{0, 3}));
  const Tensor scalar = Tensor::Copy<double>({2.5}, {});
  EXPECT_EQ(addend_tensor_num_dims(scalar.get()), 0u);
  EXPECT_EQ(addend_tensor_size(scalar.get(), 0), -1);
  EXPECT_EQ(scalar.ToString(), "tensor(2.5000, dtype=torch.float64)");
}

template <typename M>
struct Foreign {
  std::vector<float> numbers = {1, 2, 3, 4, 5, 6};
  std::vector<int64_t> shape = {3};
  std::vector<int64_t> strides = {2};
  int deleted = 0;
  M managed = {};

  Foreign() {
    managed.tensor = {numbers.data(), 1, 0, 1, 2, 32, 1, shape.data(), strides.data(), 4};
    managed.manager = this;
    managed.deleter = [](M* self) { ++static_cast<Foreign*>(self->manager)->deleted; };
  }
};

TEST_F(TensorTest, DlpackComesInWithoutACopy) {
  Foreign<Managed> foreign;
  addend_tensor* made = nullptr;
  ExpectOk(addend_tensor_from_dlpack(&foreign.managed, 0, &made));
  EXPECT_EQ(Numbers([&] {
              addend_tensor* same = nullptr;
              ExpectOk(addend_tensor_to(made, 0, nullptr, &same));
              return Tensor(same);
            }()),
            (std::vector<double>{2, 4, 6}));
  foreign.numbers[1] = 9;
  addend_tensor* copy = nullptr;
  ExpectOk(addend_tensor_to(made, ADDEND_FLOAT64, "cpu", &copy));
  EXPECT_EQ(Numbers(Tensor(copy))[0], 9);
  EXPECT_EQ(foreign.deleted, 0);
  addend_tensor_release(made);
  EXPECT_EQ(foreign.deleted, 1);
}

TEST_F(TensorTest, DlpackThatDoesNotFitStaysWithTheCaller) {
  const auto refused = [](void (*damage)(Foreign<Managed>&)) {
    Foreign<Managed> foreign;
    damage(foreign);
    addend_tensor* made = nullptr;
    const Outcome outcome(addend_tensor_from_dlpack(&foreign.managed, 0, &made));
    EXPECT_EQ(made, nullptr);
    EXPECT_EQ(foreign.deleted, 0);
    return outcome;
  };
  EXPECT_EQ(refused([](auto& f) { f.managed.tensor.ndim = -1; }).code, ADDEND_INVALID_ARGUMENT);
  EXPECT_EQ(refused([](auto& f) { f.managed.tensor.ndim = 1000000; }).code, ADDEND_INVALID_ARGUMENT);
  EXPECT_EQ(refused([](auto& f) { f.managed.tensor.shape = nullptr; }).code, ADDEND_INVALID_ARGUMENT);
  EXPECT_EQ(refused([](auto& f) { f.managed.tensor.data = nullptr; }).code, ADDEND_INVALID_ARGUMENT);
  EXPECT_EQ(refused([](auto& f) { f.managed.tensor.type_lanes = 4; }).code, ADDEND_UNIMPLEMENTED);
  EXPECT_EQ(refused([](auto& f) { f.managed.tensor.type_bits = 7; }).code, ADDEND_INVALID_ARGUMENT);
  EXPECT_EQ(refused([](auto& f) { f.managed.tensor.device_type = 12; }).code, ADDEND_UNIMPLEMENTED);
  EXPECT_EQ(refused([](auto& f) { f.shape[0] = INT64_MAX; }).code, ADDEND_INVALID_ARGUMENT);
  EXPECT_EQ(refused([](auto& f) { f.strides[0] = INT64_MAX; }).code, ADDEND_INVALID_ARGUMENT);
  EXPECT_EQ(refused([](auto& f) { f.strides[0] = -1; }).code, ADDEND_INVALID_ARGUMENT);
  EXPECT_EQ(refused([](auto& f) { f.managed.tensor.byte_offset = 2; }).code, ADDEND_INVALID_ARGUMENT);
}

TEST_F(TensorTest, DlpackOfTheNewerKind) {
  Foreign<ManagedVersioned> foreign;
  foreign.managed.major = 2;
  addend_tensor* made = nullptr;
  EXPECT_EQ(Outcome(addend_tensor_from_dlpack(&foreign.managed, 1, &made)).code, ADDEND_UNIMPLEMENTED);
  foreign.managed.major = 1;
  foreign.managed.flags = c_api::dlpack::kReadOnly;
  ExpectOk(addend_tensor_from_dlpack(&foreign.managed, 1, &made));
  EXPECT_EQ(foreign.deleted, 1);  // copied: LibTorch could have written it
  EXPECT_EQ(Numbers(Tensor(made)), (std::vector<double>{2, 4, 6}));
}

TEST_F(TensorTest, DlpackGoesOutAndIsDeletedAnywhere) {
  const int64_t before = addend_debug_live(ADDEND_HANDLE_DLPACK);
  void* managed = nullptr;
  int32_t is_versioned = -1;
  {
    const Tensor tensor = Tensor::Copy<float>({1, 2, 3, 4}, {2, 2});
    ExpectOk(addend_tensor_to_dlpack(tensor.get(), 1, &managed, &is_versioned));
  }
  EXPECT_EQ(is_versioned, 1);
  EXPECT_EQ(addend_debug_live(ADDEND_HANDLE_DLPACK), before + 1);
  auto* versioned = static_cast<ManagedVersioned*>(managed);
  EXPECT_EQ(versioned->major, 1u);
  EXPECT_EQ(versioned->flags, c_api::dlpack::kReadOnly);
  EXPECT_EQ(versioned->tensor.ndim, 2);
  EXPECT_EQ(versioned->tensor.shape[1], 2);
  EXPECT_EQ(static_cast<float*>(versioned->tensor.data)[3], 4);  // alive although the handle is gone
  std::thread([&] { versioned->deleter(versioned); }).join();
  EXPECT_EQ(addend_debug_live(ADDEND_HANDLE_DLPACK), before);
}

// Tensors of this library never change, so that what must not be written is shared in spite of that.
TEST_F(TensorTest, DlpackComesHomeWithoutACopy) {
  const Tensor tensor = Tensor::Copy<float>({1, 2, 3}, {3});
  void* managed = nullptr;
  int32_t is_versioned = 0;
  ExpectOk(addend_tensor_to_dlpack(tensor.get(), 1, &managed, &is_versioned));
  addend_tensor* back = nullptr;
  ExpectOk(addend_tensor_from_dlpack(managed, is_versioned, &back));
  EXPECT_EQ(addend_tensor_data(back), addend_tensor_data(tensor.get()));
  addend_tensor_release(back);
}

TEST_F(TensorTest, StridesAndBytes) {
  const Tensor tensor = Tensor::Copy<double>({1, 2, 3, 4, 5, 6}, {2, 3});
  EXPECT_EQ(tensor.strides(), (std::vector<int64_t>{3, 1}));
  EXPECT_EQ(tensor.num_bytes(), 48u);
  const Tensor turned = Call("aten::t", Arguments().Add(tensor)).tensor();
  EXPECT_EQ(turned.strides(), (std::vector<int64_t>{1, 3}));
  EXPECT_EQ(turned.num_bytes(), 48u);
  EXPECT_EQ(addend_tensor_stride(tensor.get(), 2), -1);
  EXPECT_TRUE(Tensor::Copy<float>({7}, {}).strides().empty());
  EXPECT_EQ(Tensor::Copy<float>({}, {0, 4}).num_bytes(), 0u);
}

TEST_F(TensorTest, OlderDlpackCallsBoolsBytes) {
  addend_tensor* made = nullptr;
  const unsigned char bools[] = {1, 0};
  const int64_t dims[] = {2};
  ExpectOk(addend_tensor_copy(bools, 2, ADDEND_BOOL, dims, 1, &made));
  const Tensor tensor(made);
  void* managed = nullptr;
  int32_t is_versioned = -1;
  ExpectOk(addend_tensor_to_dlpack(tensor.get(), 0, &managed, &is_versioned));
  auto* legacy = static_cast<Managed*>(managed);
  EXPECT_EQ(is_versioned, 0);
  EXPECT_EQ(legacy->tensor.type_code, 1);  // unsigned
  EXPECT_EQ(legacy->tensor.type_bits, 8);
  legacy->deleter(legacy);
  ExpectOk(addend_tensor_to_dlpack(tensor.get(), 1, &managed, &is_versioned));
  EXPECT_EQ(static_cast<ManagedVersioned*>(managed)->tensor.type_code, c_api::dlpack::kBool);
  static_cast<ManagedVersioned*>(managed)->deleter(static_cast<ManagedVersioned*>(managed));
}

TEST_F(TensorTest, FilesAreWrittenAndRead) {
  const std::string path = std::string(testing::TempDir()) + "/tensors.safetensors";
  {
    addend_tensor_file* made = nullptr;
    ExpectOk(addend_tensor_file_create(&made));
    const TensorFile file(made);
    ExpectOk(addend_tensor_file_add(made, "a", Tensor::Copy<float>({1}, {1}).get()));
    ExpectOk(addend_tensor_file_add(made, "b", Tensor::Copy<int64_t>({7, 8}, {2}).get()));
    ExpectOk(addend_tensor_file_add(made, "a", Tensor::Copy<float>({3}, {1}).get()));
    ExpectOk(addend_tensor_file_set_metadata(made, "names", "[\"h\xC3\xA9\"]"));
    ExpectOk(addend_tensor_file_write(made, path.c_str()));
    std::ifstream written(path, std::ios::binary);
    EXPECT_EQ(file.Encode(), std::string(std::istreambuf_iterator<char>(written), {}));
  }
  const TensorFile file = TensorFile::Read(path);
  EXPECT_EQ(addend_tensor_file_size(file.get()), 2u);
  EXPECT_EQ(Numbers(file.tensor("a")), (std::vector<double>{3}));
  EXPECT_EQ(Numbers(file.tensor("b")), (std::vector<double>{7, 8}));
  EXPECT_EQ(file.metadata("names"), "[\"h\xC3\xA9\"]");
  EXPECT_EQ(addend_tensor_file_metadata(file.get(), "nothing"), nullptr);
  EXPECT_EQ(addend_tensor_file_name(file.get(), 2), nullptr);
  addend_tensor* tensor = nullptr;
  EXPECT_EQ(Outcome(addend_tensor_file_tensor(file.get(), "c", &tensor)).code, ADDEND_NOT_FOUND);
  addend_tensor_file* none = nullptr;
  EXPECT_EQ(Outcome(addend_tensor_file_read("/nowhere", &none)).code, ADDEND_NOT_FOUND);
}

TEST_F(TensorTest, FilesAreEncodedAndDecoded) {
  const std::string bytes = TensorFile::Create()
                                .Add("wide", Tensor::Copy<double>({1, 2}, {2, 1}))
                                .Add("", Tensor::Copy<int32_t>({}, {0}))
                                .SetMetadata("key", "line\nline\t\"")
                                .Encode();
  const TensorFile file = TensorFile::Decode(bytes);
  EXPECT_EQ(file.names(), (std::vector<std::string>{"wide", ""}));
  EXPECT_EQ(Numbers(file.tensor("wide")), (std::vector<double>{1, 2}));
  EXPECT_EQ(file.tensor("wide").sizes(), (std::vector<int64_t>{2, 1}));
  EXPECT_EQ(file.tensor("").sizes(), (std::vector<int64_t>{0}));
  EXPECT_EQ(file.metadata("key"), "line\nline\t\"");
  // The format has no name for complex numbers.
  const Tensor real = Tensor::Copy<double>({1, 2}, {1, 2});
  const TensorFile complex =
      TensorFile::Create().Add("c", Call("aten::view_as_complex", Arguments().Add(real)).tensor());
  addend_string* none = nullptr;
  EXPECT_EQ(Outcome(addend_tensor_file_encode(complex.get(), &none)).code, ADDEND_INVALID_ARGUMENT);
  EXPECT_EQ(none, nullptr);
}

TEST_F(TensorTest, ComplexNumbersKeepTheirImaginaryPart) {
  const Tensor real = Tensor::Copy<double>({1, 5}, {1, 2});
  const Tensor complex = Call("aten::view_as_complex", Arguments().Add(real)).tensor();
  addend_tensor* none = nullptr;
  const Outcome outcome(addend_tensor_to(complex.get(), ADDEND_FLOAT64, nullptr, &none));
  EXPECT_EQ(outcome.code, ADDEND_INVALID_ARGUMENT);
  EXPECT_THAT(outcome.message, testing::HasSubstr("imaginary part"));
  EXPECT_EQ(none, nullptr);
  ExpectOk(addend_tensor_to(complex.get(), 0, nullptr, &none));
  addend_tensor_release(none);
}

}  // namespace
}  // namespace addend::api
