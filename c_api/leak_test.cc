// Checks that 10,000 small decompositions and 300 loads leave nothing behind.
#include <unistd.h>

#include <fstream>

#include "c_api/testing.h"

namespace addend::api {
namespace {

// Resident memory, in bytes.
int64_t Resident() {
  std::ifstream file("/proc/self/statm");
  int64_t total = 0;
  int64_t resident = 0;
  file >> total >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

// Runs `work` that often; what it takes after the first fifth is growth. `held`: handles that the caller has.
template <typename Work>
void ExpectNoGrowth(int rounds, const Work& work, int64_t held = 0) {
  int64_t after_first_fifth = 0;
  for (int round = 0; round < rounds; ++round) {
    if (round == rounds / 5) after_first_fifth = Resident();
    work();
  }
  const int64_t growth = Resident() - after_first_fifth;
  EXPECT_EQ(addend_debug_live(ADDEND_HANDLE_ANY), held);
  EXPECT_LT(growth, int64_t{8} << 20);
  std::printf("%d rounds: resident memory grew by %ld KiB\n", rounds, static_cast<long>(growth / 1024));
}

// Bodies are made and freed by hand here: owners that release everything would prove less.
void DecomposeOnce(const addend_model* model, const addend_request* request) {
  addend_results* results = nullptr;
  ExpectOk(addend_model_decompose(nullptr, model, request, &results));
  addend_composition* composition = nullptr;
  ExpectOk(addend_results_composition(results, 0, &composition));
  addend_tensor* components = nullptr;
  ExpectOk(addend_composition_part(composition, ADDEND_COMPONENTS, &components));
  addend_explanation* explanation = nullptr;
  ExpectOk(addend_results_explain(results, nullptr, "top1", &explanation));
  addend_results* none = nullptr;
  addend_status_release(addend_call(nullptr, "aten::nothing", nullptr, &none));
  addend_explanation_release(explanation);
  addend_tensor_release(components);
  addend_composition_release(composition);
  addend_results_release(results);
}

TEST(LeakTest, Decompositions) {
  addend_model* model = nullptr;
  ExpectOk(addend_model_load("docs/examples/models/breast_cancer/model.pt", 0, &model));
  addend_tensor_file* file = nullptr;
  ExpectOk(addend_tensor_file_read("docs/examples/models/breast_cancer/sample.safetensors", &file));
  addend_tensor* sample = nullptr;
  ExpectOk(addend_tensor_file_tensor(file, "input", &sample));
  addend_request* request = nullptr;
  ExpectOk(addend_request_create(&request));
  ExpectOk(addend_request_add_input(request, nullptr, sample));
  const int64_t dims[] = {1};
  ExpectOk(addend_request_split_dims(request, dims, 1));
  addend_tensor_release(sample);
  addend_tensor_file_release(file);
  ExpectNoGrowth(
      10000, [&] { DecomposeOnce(model, request); }, /*held=*/2);
  addend_request_release(request);
  addend_model_release(model);
  EXPECT_EQ(addend_debug_live(ADDEND_HANDLE_ANY), 0);
}

TEST(LeakTest, ProgramsAndAttributions) {
  addend_model* model = nullptr;
  ExpectOk(addend_model_load("docs/examples/models/breast_cancer/model.pt", 0, &model));
  {
    Request request;
    request.Input(TensorFile::Read("docs/examples/models/breast_cancer/sample.safetensors").tensor("input"))
        .SplitAlong({1});
    const int64_t held = addend_debug_live(ADDEND_HANDLE_ANY);
    ExpectNoGrowth(
        2000,
        [&] {
          addend_attribution* attribution = nullptr;
          ExpectOk(addend_model_attribute(nullptr, model, request.get(), &attribution));
          addend_explanation* explanation = nullptr;
          ExpectOk(addend_attribution_explain(attribution, 0, &explanation));
          addend_results* results = nullptr;
          ExpectOk(addend_attribution_results(attribution, &results));
          addend_explanation_release(explanation);
          addend_results_release(results);
          addend_attribution_release(attribution);
          addend_program* program = nullptr;
          ExpectOk(addend_model_record(model, request.get(), &program));
          addend_model* replayed = nullptr;
          ExpectOk(addend_program_model(program, &replayed));
          addend_program_release(program);
          ExpectOk(addend_model_run(replayed, request.get(), &results));
          addend_results_release(results);
          addend_model_release(replayed);
        },
        held);
  }
  addend_model_release(model);
  EXPECT_EQ(addend_debug_live(ADDEND_HANDLE_ANY), 0);
}

TEST(LeakTest, Loads) {
  ExpectNoGrowth(300, [] {
    addend_model* model = nullptr;
    ExpectOk(addend_model_load(kDigits, 0, &model));
    addend_model_release(model);
  });
}

TEST(LeakTest, CallsAndDlpack) {
  ExpectNoGrowth(10000, [] {
    const Composition x = Composition::FromTensors(Tensor::Copy<float>({1, 2, 3, 4}, {2, 2}));
    const Composition y = Call("aten::relu", Arguments().Add(x)).composition();
    void* managed = nullptr;
    int32_t is_versioned = 0;
    ExpectOk(addend_tensor_to_dlpack(y.components().get(), 0, &managed, &is_versioned));
    addend_tensor* back = nullptr;
    ExpectOk(addend_tensor_from_dlpack(managed, is_versioned, &back));
    addend_tensor_release(back);
  });
}

}  // namespace
}  // namespace addend::api
