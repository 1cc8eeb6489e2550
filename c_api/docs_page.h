// Names that the programs of docs/cpp.md use without defining them: an image of an eight, and a model that has learned
// digits. The test is made of that page by generate_docs.py.
#ifndef ADDEND_C_API_DOCS_PAGE_H_
#define ADDEND_C_API_DOCS_PAGE_H_

#include <future>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "c_api/testing.h"

namespace addend::api {

class DocsPage : public CApiTest {
 protected:
  // A file by the name that the page calls it; each test has a folder of its own.
  static std::string Here(const std::string& name) {
    if (name == "model.pt2") return "docs/examples/models/digits/model.pt2";
    return testing::TempDir() + "/" + testing::UnitTest::GetInstance()->current_test_info()->name() + "_" + name;
  }

  const Model model = Model::Load(Here("model.pt2"));
  const Tensor image = TensorFile::Read(kDigitsSample).tensor("input");
  const std::vector<float> pixels = image.To<float>();
  const Tensor images = Tensor::Copy(FourTimes(pixels), {4, 1, 8, 8});
  Request request = DigitRequest();

  const Tensor ids = Tensor::Copy<int64_t>({3, 1, 4, 1}, {1, 4});
  const Tensor mask = Tensor::Copy<float>({1, 1, 1, 0}, {1, 4});
  const double mask_token = 0;
  const Model text = OfWords(ids, mask);
  const Tensor x = Tensor::Copy<float>({1, -2, 3}, {3});

 private:
  static std::vector<float> FourTimes(const std::vector<float>& numbers) {
    std::vector<float> all;
    for (int k = 0; k < 4; ++k) all.insert(all.end(), numbers.begin(), numbers.end());
    return all;
  }
  // A model of ids and a mask: classes of the words that the mask keeps.
  static Model OfWords(const Tensor& ids, const Tensor& mask) {
    Request inputs;
    inputs.Input(ids, "ids").Input(mask, "mask");
    RecordingScope recording(inputs);
    const Tensor table = Tensor::Copy<float>({0, 0, 1, 2, 3, 1, -1, 2, 2, 1}, {5, 2});
    const Tensor words = Call("aten::embedding", Arguments().Add(table).Add(ids)).tensor();
    const Tensor column = Call("aten::unsqueeze", Arguments().Add(mask).Add(int64_t{-1})).tensor();
    const Tensor kept = Call("aten::mul", Arguments().Add(words).Add(column)).tensor();
    const Tensor sums = Call("aten::sum", Arguments().Add(kept).Add(std::vector<int64_t>{1})).tensor();
    recording.AddOutput(Call("aten::softmax", Arguments().Add(sums).Add(int64_t{-1})).tensor());
    return recording.End().AsModel();
  }
};

}  // namespace addend::api

#endif  // ADDEND_C_API_DOCS_PAGE_H_
