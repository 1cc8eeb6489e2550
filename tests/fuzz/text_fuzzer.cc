// Texts that the C interface reads: tensor files, policies, targets, names of operators, probes.
#include <algorithm>
#include <string>

#include "addend/addend.hpp"
#include "tests/fuzz/bytes.h"

namespace addend {
namespace {

void Release(addend_status* status) { addend_status_release(status); }

void Run(Bytes& bytes) {
  const uint8_t which = bytes.Next();
  const std::string text = bytes.Rest();
  switch (which % 5) {
    case 0: {
      addend_tensor_file* file = nullptr;
      Release(addend_tensor_file_decode(text.data(), text.size(), "bytes", &file));
      const api::TensorFile owner(file);
      for (size_t k = 0; k < addend_tensor_file_size(file); ++k) {
        owner.tensor(addend_tensor_file_name(file, k)).ToString();
      }
      break;
    }
    case 1: {
      const size_t equals = text.find('=');
      addend_context_options* options = nullptr;
      api::Check(addend_context_options_create(&options));
      const api::Handle<addend_context_options, addend_context_options_release> owner(options);
      Release(addend_context_options_set_policy(options, text.substr(0, equals).c_str(),
                                                equals == std::string::npos ? "" : text.c_str() + equals + 1));
      addend_context* context = nullptr;
      api::Check(addend_context_create(options, &context));
      const api::Context made(context);
      addend_string* json = nullptr;
      api::Check(addend_context_policy(context, &json));
      api::Take(json);
      break;
    }
    case 2: {
      const auto composition = api::Composition::FromTensors(api::Tensor::Copy<double>({1, 2, 3, 4}, {2, 1, 2}));
      composition.Explain(text).Json();
      break;
    }
    case 3:
      api::Call(text, api::Arguments().Add(api::Tensor::Copy<double>({1, 2}, {2})));
      break;
    default: {
      addend_model* model = nullptr;
      Release(addend_model_load_bytes(text.data(), std::min<size_t>(text.size(), 64), 0, &model));
      addend_model_release(model);
      break;
    }
  }
}

}  // namespace
}  // namespace addend

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  addend::Bytes bytes(data, size);
  try {
    addend::Run(bytes);
  } catch (const addend::api::Error&) {
    // A status is what there has to be.
  }
  return addend_debug_live(ADDEND_HANDLE_ANY) == 0 ? 0 : -1;
}
