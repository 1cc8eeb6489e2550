// Models through the C interface: what is decomposed, explained, reported, cancelled.
#include <gmock/gmock.h>

#include <atomic>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <sstream>
#include <thread>

#include "c_api/testing.h"

namespace addend::api {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

class ModelTest : public CApiTest {};

Request PlainDigit(const Tensor& image) {
  Request request;
  request.Input(image);
  return request;
}

TEST_F(ModelTest, BothTruthsHold) {
  const Model model = Model::Load(kDigits, ADDEND_FLOAT64);
  const std::vector<double> pixels = Numbers(TensorFile::Read(kDigitsSample).tensor("input"));
  const Tensor image = Tensor::Copy(pixels, {1, 1, 8, 8});
  Request request;
  request.Input(image).SplitAlong({2, 3}).Baseline(0.0);
  const Results results = model.Decompose(request);
  ASSERT_EQ(results.size(), 1u);
  EXPECT_EQ(results.name(0), "output");
  const Composition output = results.composition();
  EXPECT_EQ(output.numc(), 64);
  EXPECT_EQ(output.sizes(), (std::vector<int64_t>{1, 10}));
  // Recovery is what the model computes, the reference what it computes on the baseline, and nothing is left over.
  ExpectNear(Numbers(output.recovery()), Numbers(model.Run(PlainDigit(image)).tensor()), 1e-12);
  const Tensor nothing = Tensor::Copy(std::vector<double>(64), {1, 1, 8, 8});
  ExpectNear(Numbers(output.reference()), Numbers(model.Run(PlainDigit(nothing)).tensor()), 1e-12);
  ExpectNear(Numbers(output.leftover()), std::vector<double>(10), 1e-12);
  // A pixel that equals its baseline contributes nothing; others do.
  const std::vector<double> parts = Numbers(output.components());
  for (size_t p = 0; p < 64; ++p) {
    if (pixels[p] == 0) {
      EXPECT_EQ(parts[p * 10], 0) << p;
    }
  }
  EXPECT_GT(*std::max_element(parts.begin(), parts.end()), 0.1);
}

TEST_F(ModelTest, ExplanationsRankNameAndAddUp) {
  Request request = DigitRequest();
  request.Name("corner");
  const Results results = Model::Load(kDigits).Decompose(request);
  const Explanation explanation = results.Explain("top1");
  EXPECT_EQ(explanation.target(), "[0, 8]");
  EXPECT_EQ(explanation.numc(), 64);
  double sum = explanation.reference() + explanation.leftover();
  for (int64_t i = 0; i < 64; ++i) sum += addend_explanation_contribution(explanation.get(), i);
  EXPECT_NEAR(sum, explanation.recovery(), 1e-5);
  EXPECT_NEAR(explanation.recovery(), explanation.value(), 1e-5);
  EXPECT_EQ(explanation.recovery_error(), explanation.recovery() - explanation.value());
  const auto all = explanation.Top(1000);
  ASSERT_EQ(all.size(), 64u);
  for (size_t k = 1; k < all.size(); ++k) EXPECT_GE(std::abs(all[k - 1].value), std::abs(all[k].value));
  EXPECT_STREQ(addend_explanation_name(explanation.get(), 0), "corner");
  EXPECT_STREQ(addend_explanation_name(explanation.get(), 13), "row 1, column 5");
  // The difference of two elements is the difference of their explanations.
  const Explanation difference = results.Explain("8-3");
  EXPECT_EQ(difference.target(), "[0, 8] minus [0, 3]");
  const Explanation three = results.Explain("3");
  for (int64_t i = 0; i < 64; ++i) {
    EXPECT_NEAR(addend_explanation_contribution(difference.get(), i),
                addend_explanation_contribution(explanation.get(), i) - addend_explanation_contribution(three.get(), i),
                1e-6);
  }
  addend_explanation* none = nullptr;
  EXPECT_EQ(Outcome(addend_results_explain(results.get(), nullptr, "10", &none)).code, ADDEND_INVALID_ARGUMENT);
  EXPECT_EQ(Outcome(addend_results_explain(results.get(), "nowhere", "top1", &none)).code, ADDEND_NOT_FOUND);
  EXPECT_EQ(none, nullptr);
}

TEST_F(ModelTest, CopiesToADeviceOrDtype) {
  const Model model = Model::Load(kDigits);
  const Model copy = model.To("cpu");
  const auto targets = [](const Model& one) {
    return json::parse(one.Decompose(DigitRequest()).Explain().Json())["targets"];
  };
  EXPECT_EQ(targets(copy), targets(model));
  EXPECT_STREQ(addend_model_input_name(copy.get(), 0), addend_model_input_name(model.get(), 0));
  addend_model* none = nullptr;
  EXPECT_EQ(Outcome(addend_model_to(model.get(), 0, "abacus", &none)).code, ADDEND_INVALID_ARGUMENT);
  EXPECT_EQ(Outcome(addend_model_to(model.get(), ADDEND_INT64, nullptr, &none)).code, ADDEND_INVALID_ARGUMENT);
  EXPECT_EQ(Outcome(addend_model_to(nullptr, 0, "cpu", &none)).code, ADDEND_INVALID_ARGUMENT);
  EXPECT_EQ(none, nullptr);
}

TEST_F(ModelTest, KeepsReferencesAndStaysWithinMemory) {
  const Model model = Model::Load(kDigits);
  const Tensor image = TensorFile::Read(kDigitsSample).tensor("input");
  const auto ask = [&](double baseline) {
    Request request;
    request.Input(image).SplitAlong({2, 3}).Baseline(baseline);
    return request;
  };
  for (const double baseline : {0.0, 0.0, 0.5, 0.0}) {
    const Composition expected = model.Decompose(ask(baseline)).composition();
    const Composition kept = model.Decompose(ask(baseline).KeepReferences()).composition();
    EXPECT_EQ(Numbers(kept.reference()), Numbers(expected.reference()));
    EXPECT_EQ(Numbers(kept.components()), Numbers(expected.components()));
    const Attribution back = model.Attribute(ask(baseline).Target("8").KeepReferences());
    EXPECT_EQ(Numbers(back.input()), Numbers(model.Attribute(ask(baseline).Target("8")).input()));
  }
  model.ForgetReferences();
  const Composition in_groups = model.Decompose(ask(0).Memory(1 << 20)).composition();
  ExpectNear(Numbers(in_groups.components()), Numbers(model.Decompose(ask(0)).composition().components()), 1e-4);
  for (const int64_t bytes : {100, -1}) {
    try {
      model.Decompose(ask(0).Memory(bytes));
      ADD_FAILURE() << bytes;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr(bytes < 0 ? "negative" : "allow more memory"));
    }
  }
}

TEST_F(ModelTest, BaselinesByAWordAndVerifiedReferences) {
  const Model model = Model::Load(kDigits);
  const Tensor image = TensorFile::Read(kDigitsSample).tensor("input");
  const std::vector<double> pixels = Numbers(image);
  const double mean = std::accumulate(pixels.begin(), pixels.end(), 0.0) / static_cast<double>(pixels.size());
  Request words;
  words.Input(image).SplitAlong({2, 3}).Baseline("mean").VerifyReference();
  Request numbers;
  numbers.Input(image).SplitAlong({2, 3}).Baseline(mean);
  const Results by_word = model.Decompose(words);
  const Results by_number = model.Decompose(numbers);
  ExpectNear(Numbers(by_word.composition().reference()), Numbers(by_number.composition().reference()), 1e-5);
  EXPECT_LE(by_word.report("reference_error"), 1e-5);
  EXPECT_TRUE(std::isnan(by_number.report("reference_error")));
  EXPECT_EQ(by_word.report_text("reference_is_model_on_baseline"), "yes");
  EXPECT_THAT(model.Attribute(words).results().ReportJson(), HasSubstr("\"reference_error\":"));
  Request request;
  request.Input(image).SplitAlong({2, 3});
  EXPECT_EQ(Outcome(addend_request_set_baseline_word(request.get(), "grey")).code, ADDEND_INVALID_ARGUMENT);
  request.Baseline("buffer:none");
  try {
    model.Decompose(request);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("the model holds no tensor of that name"));
  }
}

TEST_F(ModelTest, BothDirectionsGiveTheSame) {
  const Model model = Model::Load(kDigits);
  const Tensor image = TensorFile::Read(kDigitsSample).tensor("input");
  const auto ask = [&](const std::string& direction) {
    Request request;
    request.Input(image).SplitAlong({2, 3}).Direction(direction);
    return request;
  };
  const Results forward = model.Decompose(ask("forward"));
  const Results backward = model.Decompose(ask("backward"));
  EXPECT_EQ(forward.report("backward"), 0);
  EXPECT_EQ(backward.report("backward"), 1);
  EXPECT_EQ(json::parse(backward.ReportJson())["direction"], "backward");
  ExpectNear(Numbers(backward.composition().components()), Numbers(forward.composition().components()), 1e-4);
  EXPECT_EQ(Numbers(backward.composition().reference()), Numbers(forward.composition().reference()));
  ExpectNear(Numbers(model.Decompose(ask("auto")).composition().components()),
             Numbers(forward.composition().components()), 1e-4);
  try {
    ask("sideways");
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ADDEND_INVALID_ARGUMENT);
    EXPECT_THAT(error.what(), HasSubstr("forward or backward, not sideways"));
  }
  EXPECT_EQ(Outcome(addend_request_set_option(ask("auto").get(), "direction", nullptr)).code, ADDEND_INVALID_ARGUMENT);
  EXPECT_EQ(Outcome(addend_request_set_option(nullptr, "direction", "auto")).code, ADDEND_INVALID_ARGUMENT);
}

TEST_F(ModelTest, OptionsOfRequests) {
  const Request request = DigitRequest();
  const auto refusal = [&](const char* key, const char* value) {
    const Outcome outcome(addend_request_set_option(request.get(), key, value));
    EXPECT_EQ(outcome.code, ADDEND_INVALID_ARGUMENT) << key;
    return outcome.message;
  };
  EXPECT_THAT(refusal("patience", "1"), HasSubstr("no option \"patience\"; its options are at, direction,"));
  EXPECT_THAT(refusal("everything", "yes"), HasSubstr("\"yes\"; true or false is expected"));
  EXPECT_THAT(refusal("memory", "1.5"), HasSubstr("a number of bytes"));
  for (const char* wrong : {"-1", "nan", "inf", "", "1s"}) {
    EXPECT_THAT(refusal("timeout", wrong), HasSubstr("a number of seconds from 0 on"));
  }
}

TEST_F(ModelTest, TimeoutEndsARun) {
  const Model model = Model::Load(kDigits);
  EXPECT_NO_THROW(model.Attribute(DigitRequest().Target("8").Option("timeout", "3600")));
  for (const bool backward : {false, true}) {
    Request request = DigitRequest().Target("8").Option("timeout", "1e-9");
    try {
      if (backward) {
        model.Attribute(request);
      } else {
        model.Decompose(request);
      }
      ADD_FAILURE();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ADDEND_CANCELLED);
      EXPECT_THAT(error.what(), HasSubstr("longer than its timeout of 1e-09 s"));
    }
  }
}

TEST_F(ModelTest, ReportAndExplanationAsJsonAndPage) {
  const Results results = Model::Load(kDigits).Decompose(DigitRequest());
  const json report = json::parse(results.ReportJson());
  EXPECT_EQ(report["preset"], "faithful");
  EXPECT_EQ(report["policy"]["preset"], "auto");
  EXPECT_EQ(report["operators"].get<double>(), results.report("operators"));
  EXPECT_EQ(report["checks"].size(), report["nodes"]);
  EXPECT_TRUE(report["tracing_failures"].empty());
  EXPECT_LT(results.report("worst_recovery_error"), 1e-5);
  EXPECT_TRUE(std::isnan(results.report("no such number")));
  EXPECT_THAT(addend_results_note(results.get(), 0), HasSubstr("preset auto: faithful"));
  EXPECT_EQ(addend_results_note(results.get(), report["notes"].size()), nullptr);
  // The preset is a remark.
  EXPECT_EQ(addend_results_warning(results.get(), 0), nullptr);
  EXPECT_EQ(addend_results_warning(nullptr, 0), nullptr);
  EXPECT_TRUE(report["warnings"].empty());
  const Explanation explanation = results.Explain();
  const json record = json::parse(explanation.Json());
  EXPECT_EQ(record["kind"], "image");
  EXPECT_EQ(record["image"]["values"].size(), 64u);
  EXPECT_EQ(record["targets"][0]["contributions"].size(), 64u);
  EXPECT_EQ(record["components"][9]["name"], "row 1, column 1");
  EXPECT_EQ(record["format"], "addend.explanation");
  EXPECT_EQ(report["format"], "addend.report");
  EXPECT_LT(std::abs(record["targets"][0]["recovery_error"].get<double>()), record["targets"][0]["tolerance"]);
  const std::string page = explanation.Html();
  EXPECT_THAT(page, HasSubstr("</html>"));
  EXPECT_THAT(page, HasSubstr("\"contributions\":["));
  EXPECT_EQ(page.find("__ADDEND_DATA__"), std::string::npos);
}

TEST_F(ModelTest, PolicyIsOfTheContext) {
  const Model model = Model::Load(kDigits);
  const Results none = model.Decompose(DigitRequest(), Context::Of({{"nonlinearity", "none"}}));
  // The nonlinearities let nothing pass: all of it is leftover.
  EXPECT_GT(std::abs(none.Explain().leftover()), 0.1);
  addend_context_options* options = nullptr;
  ExpectOk(addend_context_options_create(&options));
  EXPECT_THAT(Outcome(addend_context_options_set_policy(options, "preset", "quick")).message, HasSubstr("faithful"));
  EXPECT_EQ(Outcome(addend_context_options_set_policy(options, "no", "x")).code, ADDEND_INVALID_ARGUMENT);
  ExpectOk(addend_context_options_set_policy(options, "freeze@aten::softmax", "attention"));
  addend_context* context = nullptr;
  ExpectOk(addend_context_create(options, &context));
  addend_string* text = nullptr;
  ExpectOk(addend_context_policy(context, &text));
  const json policy = json::parse(Take(text));
  EXPECT_EQ(policy["preset"], "auto");
  EXPECT_EQ(policy["freeze@aten::softmax"], "attention");
  addend_context_options_release(options);
  addend_context_release(context);
}

TEST_F(ModelTest, ProbesFollowTheOutputs) {
  Request request = DigitRequest();
  request.Probe("#1").Probe("logits");
  const Results results = Model::Load(kDigits).Decompose(request);
  ASSERT_EQ(results.size(), 3u);
  EXPECT_EQ(results.name(1), "#1");
  const Composition inner = results.composition(1);
  ExpectNear(Numbers(inner.recovery()), Numbers(inner.value()), 1e-4);
  EXPECT_EQ(results.Explain("top1", "logits").numc(), 64);
  request.Probe("nowhere");
  addend_results* none = nullptr;
  const Model model = Model::Load(kDigits);
  EXPECT_THAT(Outcome(addend_model_decompose(nullptr, model.get(), request.get(), &none)).message,
              HasSubstr("nothing inside the model is called nowhere"));
}

TEST_F(ModelTest, InputsByName) {
  const Model model = Model::Load(kDigits);
  ASSERT_EQ(addend_model_num_inputs(model.get()), 1u);
  const std::string name = addend_model_input_name(model.get(), 0);
  EXPECT_EQ(addend_model_input_name(model.get(), 1), nullptr);
  const Tensor image = TensorFile::Read(kDigitsSample).tensor("input");
  Request request;
  request.Input(image, name).SplitAlong({-2, -1}).Baseline(0.0);
  const auto by_name = Numbers(model.Decompose(request).composition().components());
  EXPECT_EQ(by_name, Numbers(model.Decompose(DigitRequest()).composition().components()));
  Request other;
  other.Input(image, "pixles").SplitAlong({2, 3});
  addend_results* none = nullptr;
  EXPECT_EQ(Outcome(addend_model_decompose(nullptr, model.get(), other.get(), &none)).message,
            "the model has no input pixles; it has " + name);
}

TEST_F(ModelTest, FromMemoryItIsTheSame) {
  std::ifstream file(kDigits, std::ios::binary);
  std::stringstream content;
  content << file.rdbuf();
  const std::string bytes = content.str();
  addend_model* made = nullptr;
  ExpectOk(addend_model_load_bytes(bytes.data(), bytes.size(), 0, &made));
  const Model model(made);
  EXPECT_EQ(Numbers(model.Decompose(DigitRequest()).composition().components()),
            Numbers(Model::Load(kDigits).Decompose(DigitRequest()).composition().components()));
}

// Text that a command prints.
std::string Printed(const std::string& command) {
  std::FILE* pipe = ::popen(command.c_str(), "r");
  std::string text;
  for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) text.push_back(static_cast<char>(c));
  EXPECT_EQ(::pclose(pipe), 0) << command;
  return text;
}

TEST_F(ModelTest, DigestsAreThoseOfSha256sum) {
  EXPECT_EQ(Model::Sha256(kDigits), Printed("sha256sum < " + std::string(kDigits)).substr(0, 64));
  const std::string folder = testing::TempDir() + "/digest_program";
  Model::Load(kDigits).Record(DigitRequest()).Save(folder);
  const std::string of_both =
      Printed("cd '" + folder + "' && sha256sum program.json weights.safetensors | sha256sum").substr(0, 64);
  EXPECT_EQ(Model::Sha256(folder), of_both);
}

// Four strips of pixels as players.
TEST_F(ModelTest, ShapleyValuesAddUpAndAreNearThePathRule) {
  std::vector<int64_t> strips(64);
  for (size_t k = 0; k < 64; ++k) strips[k] = static_cast<int64_t>(k / 16);
  const Tensor image = TensorFile::Read(kDigitsSample).tensor("input");
  Request request;
  request.Input(image).SplitByLabels(Tensor::Copy(strips, {1, 1, 8, 8})).Baseline(0.0);
  const Model model = Model::Load(kDigits);
  addend_composition* made = nullptr;
  ExpectOk(addend_model_shapley(model.get(), request.get(), &made));
  const Composition shapley(made);
  EXPECT_EQ(shapley.numc(), 4);
  const auto exact = Numbers(shapley.components());
  const auto value = Numbers(model.Run(PlainDigit(image)).tensor());
  const auto empty = Numbers(model.Run(PlainDigit(Tensor::Copy(std::vector<float>(64), {1, 1, 8, 8}))).tensor());
  const auto path = Numbers(model.Decompose(request).composition().components());
  for (size_t o = 0; o < 10; ++o) {
    double sum = 0;
    double path_sum = 0;
    for (size_t c = 0; c < 4; ++c) sum += exact[c * 10 + o];
    for (size_t c = 0; c < 4; ++c) path_sum += path[c * 10 + o];
    EXPECT_NEAR(sum, value[o] - empty[o], 1e-4);
    EXPECT_NEAR(path_sum, sum, 1e-4);
  }
  addend_composition* none = nullptr;
  EXPECT_THAT(Outcome(addend_model_shapley(model.get(), DigitRequest().get(), &none)).message, HasSubstr("at most 16"));
}

// ---- callbacks and cancellation

struct Progress {
  std::vector<std::string> stages;
  int64_t calls = 0;
  int32_t stop_with = 0;
  std::string stop_at;
  int released = 0;
};

int32_t OnProgress(void* payload, const char* stage, int64_t done, int64_t total) {
  auto* progress = static_cast<Progress*>(payload);
  ++progress->calls;
  if (progress->stages.empty() || progress->stages.back() != stage) progress->stages.emplace_back(stage);
  EXPECT_GE(done, 0);
  EXPECT_TRUE(total == 0 || done <= total);
  return progress->stop_at == stage ? progress->stop_with : 0;
}

Context ContextWith(Progress* progress) {
  addend_context_options* made = nullptr;
  ExpectOk(addend_context_options_create(&made));
  const Handle<addend_context_options, addend_context_options_release> options(made);
  ExpectOk(addend_context_options_set_progress(made, OnProgress, progress,
                                               [](void* p) { ++static_cast<Progress*>(p)->released; }));
  addend_context* context = nullptr;
  ExpectOk(addend_context_create(made, &context));
  return Context(context);
}

TEST_F(ModelTest, ProgressIsToldAndEndsRuns) {
  const Model model = Model::Load(kDigits);
  Progress progress;
  {
    const Context context = ContextWith(&progress);
    model.Decompose(DigitRequest(), context);
    EXPECT_THAT(progress.stages, ElementsAre("trace", "linearize", "sweep"));
    EXPECT_GT(progress.calls, 10);
    for (const char* stage : {"trace", "linearize", "sweep"}) {
      progress.stop_at = stage;
      progress.stop_with = ADDEND_CALLBACK_USER_ERROR;
      addend_results* none = nullptr;
      addend_status* status = addend_model_decompose(context.get(), model.get(), DigitRequest().get(), &none);
      ASSERT_EQ(addend_status_code(status), ADDEND_CANCELLED) << stage << ": " << addend_status_message(status);
      EXPECT_STREQ(addend_status_payload(status, "callback"), "-7");
      addend_status_release(status);
      EXPECT_EQ(none, nullptr);
    }
    EXPECT_EQ(progress.released, 0);
  }
  EXPECT_EQ(progress.released, 1);
}

TEST_F(ModelTest, NotesGoToTheLog) {
  std::vector<std::pair<int32_t, std::string>> lines;
  addend_context_options* options = nullptr;
  ExpectOk(addend_context_options_create(&options));
  ExpectOk(addend_context_options_set_log(
      options,
      [](void* payload, int32_t level, const char* message) {
        static_cast<std::vector<std::pair<int32_t, std::string>>*>(payload)->emplace_back(level, message);
      },
      &lines, nullptr));
  ExpectOk(addend_context_options_set_policy(options, "freeze@nowhere", "none"));
  addend_context* context = nullptr;
  ExpectOk(addend_context_create(options, &context));
  addend_context_options_release(options);
  Model::Load(kDigits).Decompose(DigitRequest(), Context(context));
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0].first, ADDEND_LOG_INFO);
  EXPECT_EQ(lines[1].first, ADDEND_LOG_WARNING);
  EXPECT_THAT(lines[1].second, HasSubstr("nowhere"));
}

TEST_F(ModelTest, AnotherThreadEndsALongRun) {
  const Model model = Model::Load(kDigits);
  addend_cancellation* cancellation = nullptr;
  ExpectOk(addend_cancellation_create(&cancellation));
  Request request;
  // A batch whose run takes minutes in 10,000 segments.
  std::vector<float> numbers(16 * 64);
  for (size_t k = 0; k < numbers.size(); ++k) numbers[k] = static_cast<float>(k % 17) / 16;
  request.Input(Tensor::Copy(numbers, {16, 1, 8, 8})).SplitAlong({2, 3}).Baseline(0.0);
  ExpectOk(addend_request_set_cancellation(request.get(), cancellation));
  const Context context = Context::Of({{"segments", "10000"}});
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    addend_cancellation_cancel(cancellation);
  });
  addend_results* none = nullptr;
  const auto start = std::chrono::steady_clock::now();
  const Outcome outcome(addend_model_decompose(context.get(), model.get(), request.get(), &none));
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  other.join();
  EXPECT_EQ(outcome.code, ADDEND_CANCELLED) << outcome.message;
  EXPECT_GT(seconds, 0.15);
  EXPECT_LT(seconds, 20);
  EXPECT_EQ(none, nullptr);
  // Runs that begin later end at once.
  EXPECT_EQ(Outcome(addend_model_run(model.get(), request.get(), &none)).code, ADDEND_CANCELLED);
  addend_cancellation_release(cancellation);
}

TEST_F(ModelTest, HandlesMayBeReleasedInAnyOrder) {
  addend_model* model = nullptr;
  ExpectOk(addend_model_load(kDigits, 0, &model));
  addend_results* results = nullptr;
  {
    const Request request = DigitRequest();
    ExpectOk(addend_model_decompose(nullptr, model, request.get(), &results));
  }
  addend_model_release(model);
  addend_composition* composition = nullptr;
  ExpectOk(addend_results_composition(results, 0, &composition));
  addend_explanation* explanation = nullptr;
  ExpectOk(addend_results_explain(results, nullptr, "top1", &explanation));
  addend_results_release(results);
  addend_tensor* tensor = nullptr;
  ExpectOk(addend_composition_component(composition, 3, &tensor));
  addend_composition_release(composition);
  EXPECT_EQ(Numbers(Tensor(tensor)).size(), 10u);
  EXPECT_THAT(Take([&] {
                addend_string* text = nullptr;
                ExpectOk(addend_explanation_html(explanation, &text));
                return text;
              }()),
              HasSubstr("</html>"));
  addend_explanation_release(explanation);
}

}  // namespace
}  // namespace addend::api
