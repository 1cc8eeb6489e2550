// Whatever a caller hands in, the answer is a status: NULL everywhere, handles that were released, text that is none,
// numbers that fit nothing, files that end early.
#include <cmath>
#include <fstream>
#include <functional>
#include <sstream>
#include <type_traits>

#include "c_api/testing.h"

namespace addend::api {
namespace {

constexpr char kNoUtf8[] = "\xC3\x28";

std::string Content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream content;
  content << file.rdbuf();
  return content.str();
}

// The plan of a job of one row.
std::string JobPlan(const std::string& name) {
  const std::string path = testing::TempDir() + "/" + name + ".json";
  Job::Plan(path, kDigits, DigitRequest(), std::string("{\"inputs\": [\"") + kDigitsSample + "\"]}");
  return path;
}

class HostileTest : public CApiTest {
 protected:
  // Every function that takes handles, called on one set of them.
  struct Handles {
    addend_status* status = nullptr;
    addend_string* string = nullptr;
    addend_cancellation* cancellation = nullptr;
    addend_context* context = nullptr;
    addend_context_options* options = nullptr;
    addend_tensor* tensor = nullptr;
    addend_tensor_file* file = nullptr;
    addend_composition* composition = nullptr;
    addend_explanation* explanation = nullptr;
    addend_concepts* concepts = nullptr;
    addend_model* model = nullptr;
    addend_request* request = nullptr;
    addend_results* results = nullptr;
    addend_attribution* attribution = nullptr;
    addend_program* program = nullptr;
    addend_plan* plan = nullptr;
    addend_audit_log* log = nullptr;
    addend_job* job = nullptr;
    addend_trace* trace = nullptr;
    addend_frames* frames = nullptr;
    addend_arguments* arguments = nullptr;
    addend_rules* rules = nullptr;
    addend_rule_call* rule_call = nullptr;
    addend_rule_result* rule_result = nullptr;
  };

  // All with the same value.
  static Handles All(uintptr_t value) {
    Handles h;
    const auto set = [value](auto*&... handles) {
      ((handles = reinterpret_cast<std::remove_reference_t<decltype(handles)>>(value)), ...);
    };
    set(h.status, h.string, h.cancellation, h.context, h.options, h.tensor, h.file, h.composition, h.explanation,
        h.concepts, h.log, h.job, h.model, h.request, h.results, h.attribution, h.program, h.plan, h.trace, h.frames,
        h.arguments, h.rules, h.rule_call, h.rule_result);
    return h;
  }

  // All of which have been released.
  static Handles Released() {
    Handles h;
    addend_tensor_file* none = nullptr;
    h.status = addend_tensor_file_read("/nowhere", &none);
    ExpectOk(addend_context_policy(nullptr, &h.string));
    ExpectOk(addend_cancellation_create(&h.cancellation));
    ExpectOk(addend_context_options_create(&h.options));
    ExpectOk(addend_context_create(h.options, &h.context));
    const int64_t dims[] = {1, 1};
    const float one = 1;
    ExpectOk(addend_tensor_copy(&one, 4, ADDEND_FLOAT32, dims, 2, &h.tensor));
    ExpectOk(addend_tensor_file_create(&h.file));
    ExpectOk(addend_composition_from_tensors(h.tensor, nullptr, nullptr, 0, &h.composition));
    ExpectOk(addend_composition_explain(h.composition, "top1", &h.explanation));
    ExpectOk(addend_concepts_read(R"({"format": "addend.concepts", "version": 1})", &h.concepts));
    ExpectOk(addend_model_load(kDigits, 0, &h.model));
    ExpectOk(addend_request_create(&h.request));
    ExpectOk(addend_arguments_create(&h.arguments));
    ExpectOk(addend_arguments_add_composition(h.arguments, nullptr, h.composition));
    ExpectOk(addend_call(nullptr, "aten::relu", h.arguments, &h.results));
    const Request live = [] {
      Request request;
      request.Input(Tensor::Copy<float>({1, 2}, {1, 2})).SplitAlong({1});
      return request;
    }();
    ExpectOk(addend_model_attribute(nullptr, h.model, DigitRequest().get(), &h.attribution));
    ExpectOk(addend_model_record(h.model, DigitRequest().get(), &h.program));
    ExpectOk(addend_model_plan(nullptr, h.model, DigitRequest().get(), &h.plan));
    ExpectOk(addend_audit_log_open((testing::TempDir() + "/released.log").c_str(), nullptr, &h.log));
    ExpectOk(addend_job_open(JobPlan("released").c_str(), &h.job));
    ExpectOk(addend_trace_begin(nullptr, live.get(), &h.trace));
    ExpectOk(addend_rules_create(&h.rules));
    ReleaseAll(h);
    return h;
  }

  // Each function that returns a status, with otherwise sensible parameters.
  static std::vector<std::pair<std::string, std::function<addend_status*()>>> CallsOn(const Handles& h) {
    static void* managed = nullptr;
    static int32_t number = 0;
    static double real = 0;
    static const int64_t dims[] = {0};
    static addend_tensor* t = nullptr;
    static addend_string* s = nullptr;
    static addend_composition* c = nullptr;
    static addend_explanation* e = nullptr;
    static addend_results* r = nullptr;
    static addend_attribution* a = nullptr;
    static addend_program* p = nullptr;
    static addend_plan* plan = nullptr;
    static addend_model* m = nullptr;
    static addend_trace* trace = nullptr;
    static addend_context* context = nullptr;
    static const addend_rule_callbacks callbacks = {
        sizeof(addend_rule_callbacks), nullptr, nullptr,
        [](void*, const addend_rule_call*, addend_rule_result*) -> int32_t { return 0; }};
    return {
        {"context_options_set_policy", [=] { return addend_context_options_set_policy(h.options, "preset", "fast"); }},
        {"context_options_set_log",
         [=] { return addend_context_options_set_log(h.options, nullptr, nullptr, nullptr); }},
        {"context_options_set_progress",
         [=] { return addend_context_options_set_progress(h.options, nullptr, nullptr, nullptr); }},
        {"context_options_set_detail", [=] { return addend_context_options_set_detail(h.options, 1); }},
        {"context_create", [=] { return addend_context_create(h.options, &context); }},
        {"tensor_to_dlpack", [=] { return addend_tensor_to_dlpack(h.tensor, 1, &managed, &number); }},
        {"tensor_to_libtorch", [=] { return addend_tensor_to_libtorch(h.tensor, &managed); }},
        {"tensor_to", [=] { return addend_tensor_to(h.tensor, 0, nullptr, &t); }},
        {"tensor_to_string", [=] { return addend_tensor_to_string(h.tensor, &s); }},
        {"tensor_file_tensor", [=] { return addend_tensor_file_tensor(h.file, nullptr, &t); }},
        {"tensor_file_add", [=] { return addend_tensor_file_add(h.file, "a", h.tensor); }},
        {"tensor_file_set_metadata", [=] { return addend_tensor_file_set_metadata(h.file, "a", "b"); }},
        {"tensor_file_write", [=] { return addend_tensor_file_write(h.file, "/dev/null"); }},
        {"tensor_file_encode", [=] { return addend_tensor_file_encode(h.file, &s); }},
        {"composition_from_tensors",
         [=] { return addend_composition_from_tensors(h.tensor, nullptr, nullptr, 0, &c); }},
        {"composition_diagonal", [=] { return addend_composition_diagonal(h.tensor, dims, 1, nullptr, 0, -1, &c); }},
        {"composition_from_labels",
         [=] { return addend_composition_from_labels(h.tensor, h.tensor, nullptr, -1, &c); }},
        {"composition_part", [=] { return addend_composition_part(h.composition, 0, &t); }},
        {"composition_component", [=] { return addend_composition_component(h.composition, 0, &t); }},
        {"composition_select", [=] { return addend_composition_select(h.composition, dims, 1, 1, &c); }},
        {"composition_grad", [=] { return addend_composition_grad(h.composition, h.composition, h.composition, &c); }},
        {"composition_explain", [=] { return addend_composition_explain(h.composition, "top1", &e); }},
        {"composition_to_string", [=] { return addend_composition_to_string(h.composition, &s); }},
        {"explanation_json", [=] { return addend_explanation_json(h.explanation, &s); }},
        {"explanation_html", [=] { return addend_explanation_html(h.explanation, &s); }},
        {"explanation_svg", [=] { return addend_explanation_svg(h.explanation, &s); }},
        {"request_add_input", [=] { return addend_request_add_input(h.request, nullptr, h.tensor); }},
        {"request_add_inside", [=] { return addend_request_add_inside(h.request, "#0"); }},
        {"request_split_dims", [=] { return addend_request_split_dims(h.request, dims, 1); }},
        {"request_split_labels", [=] { return addend_request_split_labels(h.request, h.tensor); }},
        {"request_split_parts", [=] { return addend_request_split_parts(h.request, h.tensor); }},
        {"request_set_baseline", [=] { return addend_request_set_baseline(h.request, h.tensor); }},
        {"request_set_baselines", [=] { return addend_request_set_baselines(h.request, h.tensor); }},
        {"request_set_baseline_number", [=] { return addend_request_set_baseline_number(h.request, 0); }},
        {"request_set_first_component", [=] { return addend_request_set_first_component(h.request, 0); }},
        {"request_add_name", [=] { return addend_request_add_name(h.request, "a"); }},
        {"request_add_probe", [=] { return addend_request_add_probe(h.request, "#0"); }},
        {"request_add_parameter", [=] { return addend_request_add_parameter(h.request, "w", h.tensor); }},
        {"request_add_buffer", [=] { return addend_request_add_buffer(h.request, "b", h.tensor); }},
        {"request_add_target", [=] { return addend_request_add_target(h.request, "top1"); }},
        {"request_next_example", [=] { return addend_request_next_example(h.request); }},
        {"request_set_option", [=] { return addend_request_set_option(h.request, "everything", "true"); }},
        {"request_set_structure", [=] { return addend_request_set_structure(h.request, "[]"); }},
        {"request_set_cancellation", [=] { return addend_request_set_cancellation(h.request, h.cancellation); }},
        {"model_run", [=] { return addend_model_run(h.model, h.request, &r); }},
        {"model_decompose", [=] { return addend_model_decompose(h.context, h.model, h.request, &r); }},
        {"model_attribute", [=] { return addend_model_attribute(h.context, h.model, h.request, &a); }},
        {"model_plan", [=] { return addend_model_plan(h.context, h.model, h.request, &plan); }},
        {"plan_attribute", [=] { return addend_plan_attribute(h.plan, h.request, &a); }},
        {"plan_attribute_into", [=] { return addend_plan_attribute_into(h.plan, h.request, h.tensor, nullptr); }},
        {"model_record", [=] { return addend_model_record(h.model, h.request, &p); }},
        {"model_check_trace", [=] { return addend_model_check_trace(h.model, h.request, nullptr, &s); }},
        {"model_methods", [=] { return addend_model_methods(h.model, "forward", &m); }},
        {"model_requirements", [=] { return addend_model_requirements(h.context, h.model, h.request, &s); }},
        {"attribution_explain", [=] { return addend_attribution_explain(h.attribution, 0, &e); }},
        {"attribution_results", [=] { return addend_attribution_results(h.attribution, &r); }},
        {"attribution_json", [=] { return addend_attribution_json(h.attribution, &s); }},
        {"attribution_html", [=] { return addend_attribution_html(h.attribution, &s); }},
        {"attribution_reasons", [=] { return addend_attribution_reasons(h.attribution, h.concepts, &s); }},
        {"model_interactions",
         [=] { return addend_model_interactions(h.context, h.model, h.request, h.concepts, &s); }},
        {"explanation_reasons", [=] { return addend_explanation_reasons(h.explanation, h.concepts, &s); }},
        {"audit_log_append", [=] { return addend_audit_log_append(h.log, h.attribution, nullptr, &s); }},
        {"audit_log_state", [=] { return addend_audit_log_state(h.log, &s); }},
        {"job_run", [=] { return addend_job_run(h.job, 0, nullptr, &s); }},
        {"job_plan", [=] { return addend_job_plan(nullptr, "/tmp/plan", kDigits, h.request, nullptr, &s); }},
        {"program_save", [=] { return addend_program_save(h.program, "/dev/null/program"); }},
        {"program_export_torchscript", [=] { return addend_program_export_torchscript(h.program, "/dev/null/p.pt"); }},
        {"program_to", [=] { return addend_program_to(h.program, ADDEND_FLOAT64, &p); }},
        {"program_requirements", [=] { return addend_program_requirements(h.context, h.program, h.request, &s); }},
        {"program_model", [=] { return addend_program_model(h.program, &m); }},
        {"program_replay", [=] { return addend_program_replay(h.program, h.request, nullptr, &r); }},
        {"program_summary", [=] { return addend_program_summary(h.program, &s); }},
        {"program_code_text", [=] { return addend_program_code_text(h.program, nullptr, &s); }},
        {"program_code_json", [=] { return addend_program_code_json(h.program, nullptr, &s); }},
        {"program_graph_json", [=] { return addend_program_graph_json(h.program, nullptr, &s); }},
        {"program_graph_dot", [=] { return addend_program_graph_dot(h.program, nullptr, &s); }},
        {"program_graph_html", [=] { return addend_program_graph_html(h.program, nullptr, &s); }},
        {"model_shapley", [=] { return addend_model_shapley(h.model, h.request, &c); }},
        {"results_composition", [=] { return addend_results_composition(h.results, 0, &c); }},
        {"results_tensor", [=] { return addend_results_tensor(h.results, 0, &t); }},
        {"results_number", [=] { return addend_results_number(h.results, 0, &real); }},
        {"results_explain", [=] { return addend_results_explain(h.results, nullptr, "top1", &e); }},
        {"results_report", [=] { return addend_results_report(h.results, &s); }},
        {"trace_begin", [=] { return addend_trace_begin(h.context, h.request, &trace); }},
        {"trace_record", [=] { return addend_trace_record(h.request, nullptr, nullptr, nullptr, &trace); }},
        {"trace_show_code", [=] { return addend_trace_show_code(h.trace, nullptr, nullptr, nullptr, nullptr); }},
        {"live_record", [=] { return addend_live_record(h.request, nullptr, nullptr, &p); }},
        {"live_check_trace", [=] { return addend_live_check_trace(h.request, nullptr, nullptr, nullptr, &s); }},
        {"trace_end_program", [=] { return addend_trace_end_program(h.trace, &p); }},
        {"frames_add", [=] { return addend_frames_add(h.frames, "a.py", 1, "f", "x", 0, 1); }},
        {"trace_set_module", [=] { return addend_trace_set_module(h.trace, "a"); }},
        {"trace_add_module_output", [=] { return addend_trace_add_module_output(h.trace, "a", 0, h.tensor); }},
        {"trace_add_output", [=] { return addend_trace_add_output(h.trace, "a", h.tensor); }},
        {"trace_end", [=] { return addend_trace_end(h.trace, &r); }},
        {"arguments_add_composition",
         [=] { return addend_arguments_add_composition(h.arguments, nullptr, h.composition); }},
        {"arguments_add_tensor", [=] { return addend_arguments_add_tensor(h.arguments, nullptr, h.tensor); }},
        {"arguments_add_none", [=] { return addend_arguments_add_none(h.arguments, nullptr); }},
        {"arguments_add_i64", [=] { return addend_arguments_add_i64(h.arguments, nullptr, 1); }},
        {"arguments_add_f64", [=] { return addend_arguments_add_f64(h.arguments, nullptr, 1); }},
        {"arguments_add_bool", [=] { return addend_arguments_add_bool(h.arguments, nullptr, 1); }},
        {"arguments_add_str", [=] { return addend_arguments_add_str(h.arguments, nullptr, "a"); }},
        {"arguments_add_dtype", [=] { return addend_arguments_add_dtype(h.arguments, nullptr, ADDEND_INT8); }},
        {"arguments_add_i64s", [=] { return addend_arguments_add_i64s(h.arguments, nullptr, dims, 1); }},
        {"arguments_begin_list", [=] { return addend_arguments_begin_list(h.arguments, nullptr); }},
        {"arguments_end_list", [=] { return addend_arguments_end_list(h.arguments); }},
        {"call", [=] { return addend_call(h.context, "aten::relu", h.arguments, &r); }},
        {"call_shapley", [=] { return addend_call_shapley("aten::relu", h.arguments, &c); }},
        {"rules_add", [=] { return addend_rules_add(h.rules, "a::b", "path"); }},
        {"rules_add_callbacks", [=] { return addend_rules_add_callbacks(h.rules, "a::b", &callbacks); }},
        {"context_options_set_rules", [=] { return addend_context_options_set_rules(h.options, h.rules); }},
        {"rule_call_operand", [=] { return addend_rule_call_operand(h.rule_call, 0, ADDEND_VALUE, &t); }},
        {"rule_call_output", [=] { return addend_rule_call_output(h.rule_call, ADDEND_VALUE, &t); }},
        {"rule_call_number", [=] { return addend_rule_call_number(h.rule_call, 0, &real); }},
        {"rule_result_add_term", [=] { return addend_rule_result_add_term(h.rule_result, 0, h.tensor); }},
        {"rule_result_set_exact", [=] { return addend_rule_result_set_exact(h.rule_result, 1); }},
    };
  }

  // Functions that return no status answer with nothing.
  static void ExpectNothing(const Handles& h) {
    EXPECT_EQ(addend_status_payload(h.status, "op"), nullptr);
    EXPECT_EQ(addend_status_payload_key(h.status, 0), nullptr);
    EXPECT_STREQ(addend_status_detail(h.status), "");
    EXPECT_EQ(addend_string_data(h.string), nullptr);
    EXPECT_EQ(addend_string_size(h.string), 0u);
    EXPECT_EQ(addend_tensor_num_dims(h.tensor), 0u);
    EXPECT_EQ(addend_tensor_size(h.tensor, 0), -1);
    EXPECT_EQ(addend_tensor_stride(h.tensor, 0), -1);
    EXPECT_EQ(addend_tensor_num_bytes(h.tensor), 0u);
    EXPECT_EQ(addend_tensor_dtype(h.tensor), 0);
    EXPECT_EQ(addend_tensor_device(h.tensor), nullptr);
    EXPECT_EQ(addend_tensor_data(h.tensor), nullptr);
    EXPECT_EQ(addend_tensor_file_size(h.file), 0u);
    EXPECT_EQ(addend_tensor_file_name(h.file, 0), nullptr);
    EXPECT_EQ(addend_tensor_file_metadata(h.file, "a"), nullptr);
    EXPECT_EQ(addend_composition_numc(h.composition), 0);
    EXPECT_EQ(addend_composition_num_dims(h.composition), 0u);
    EXPECT_EQ(addend_composition_size(h.composition, 0), -1);
    EXPECT_EQ(addend_composition_dtype(h.composition), 0);
    EXPECT_EQ(addend_composition_device(h.composition), nullptr);
    EXPECT_TRUE(std::isnan(addend_explanation_number(h.explanation, 0)));
    EXPECT_EQ(addend_explanation_target(h.explanation), nullptr);
    EXPECT_EQ(addend_explanation_numc(h.explanation), 0);
    EXPECT_TRUE(std::isnan(addend_explanation_contribution(h.explanation, 0)));
    EXPECT_EQ(addend_explanation_name(h.explanation, 0), nullptr);
    EXPECT_EQ(addend_explanation_num_baselines(h.explanation), 0);
    EXPECT_TRUE(std::isnan(addend_explanation_standard_error(h.explanation, 0)));
    EXPECT_TRUE(std::isnan(addend_explanation_same_sign(h.explanation, 0)));
    EXPECT_EQ(addend_explanation_ranked(h.explanation, 0), -1);
    EXPECT_EQ(addend_model_num_inputs(h.model), 0u);
    EXPECT_EQ(addend_model_input_name(h.model, 0), nullptr);
    EXPECT_EQ(addend_results_size(h.results), 0u);
    EXPECT_EQ(addend_results_kind(h.results, 0), ADDEND_RESULT_NONE);
    EXPECT_EQ(addend_results_name(h.results, 0), nullptr);
    EXPECT_EQ(addend_results_dtype(h.results, 0), 0);
    EXPECT_EQ(addend_results_num_dims(h.results, 0), 0u);
    EXPECT_EQ(addend_results_dim_size(h.results, 0, 0), -1);
    EXPECT_TRUE(std::isnan(addend_results_report_number(h.results, "nodes")));
    EXPECT_EQ(addend_results_note(h.results, 0), nullptr);
    EXPECT_EQ(addend_results_warning(h.results, 0), nullptr);
    EXPECT_EQ(addend_attribution_num_targets(h.attribution), 0u);
    EXPECT_EQ(addend_program_num_operators(h.program), 0u);
    EXPECT_EQ(addend_program_num_values(h.program), 0u);
    EXPECT_EQ(addend_program_value_name(h.program, 0), nullptr);
    EXPECT_EQ(addend_program_value_kind(h.program, 0), nullptr);
    EXPECT_EQ(addend_program_num_outputs(h.program), 0u);
    EXPECT_EQ(addend_program_output_name(h.program, 0), nullptr);
    EXPECT_EQ(addend_program_output_dtype(h.program, 0), 0);
    EXPECT_EQ(addend_program_output_num_dims(h.program, 0), 0u);
    EXPECT_EQ(addend_program_output_size(h.program, 0, 0), -1);
    EXPECT_EQ(addend_rule_call_num_operands(h.rule_call), 0u);
    EXPECT_EQ(addend_rule_call_decomposed(h.rule_call, 0), 0);
    addend_cancellation_cancel(h.cancellation);
  }

  static void ReleaseAll(const Handles& h) {
    addend_status_release(h.status);
    addend_string_release(h.string);
    addend_cancellation_release(h.cancellation);
    addend_context_release(h.context);
    addend_context_options_release(h.options);
    addend_tensor_release(h.tensor);
    addend_tensor_file_release(h.file);
    addend_composition_release(h.composition);
    addend_explanation_release(h.explanation);
    addend_concepts_release(h.concepts);
    addend_model_release(h.model);
    addend_request_release(h.request);
    addend_results_release(h.results);
    addend_attribution_release(h.attribution);
    addend_program_release(h.program);
    addend_plan_release(h.plan);
    addend_audit_log_release(h.log);
    addend_job_release(h.job);
    addend_trace_release(h.trace);
    addend_arguments_release(h.arguments);
    addend_rules_release(h.rules);
  }
};

TEST_F(HostileTest, NullHandles) {
  const Handles none;
  for (const auto& [name, call] : CallsOn(none)) {
    SCOPED_TRACE(name);
    // Without a cancellation, nobody cancels; but there is no request.
    const Outcome outcome(call());
    EXPECT_EQ(outcome.code, ADDEND_INVALID_ARGUMENT);
    EXPECT_NE(outcome.message.find("is NULL"), std::string::npos) << outcome.message;
  }
  ExpectNothing(none);
  ReleaseAll(none);
}

TEST_F(HostileTest, ReleasedHandles) {
  const Handles released = Released();
  for (const auto& [name, call] : CallsOn(released)) {
    SCOPED_TRACE(name);
    const Outcome outcome(call());
    EXPECT_EQ(outcome.code, ADDEND_INVALID_ARGUMENT);
    EXPECT_TRUE(outcome.message.find("was released") != std::string::npos ||
                outcome.message.find("is NULL") != std::string::npos)
        << outcome.message;
  }
  ExpectNothing(released);
  ReleaseAll(released);  // a second time
  EXPECT_STREQ(addend_status_message(released.status), "status was released");
}

TEST_F(HostileTest, PlansAndOptionsOfJobs) {
  const std::string path = testing::TempDir() + "/options.json";
  const Request request = DigitRequest();
  addend_string* text = nullptr;
  addend_job* none = nullptr;
  const std::string inputs = std::string("\"inputs\": [\"") + kDigitsSample + "\"]";
  for (const std::string& options :
       {std::string("[]"), std::string("{"), std::string("{}"), std::string("{\"inputs\": 1}"),
        "{" + inputs + ", \"batch\": 0}", "{" + inputs + ", \"shards\": 1.5}", "{" + inputs + ", \"format\": \"x\"}",
        "{" + inputs + ", \"dtype\": \"x\"}", "{" + inputs + ", \"names\": [\"one\"]}",
        "{" + inputs + ", \"concepts\": 7}", "{" + inputs + ", \"contributions\": false}",
        "{" + inputs + ", \"x\": 1}"}) {
    EXPECT_EQ(Outcome(addend_job_plan(nullptr, path.c_str(), kDigits, request.get(), options.c_str(), &text)).code,
              ADDEND_INVALID_ARGUMENT)
        << options;
  }
  EXPECT_EQ(
      Outcome(addend_job_plan(nullptr, path.c_str(), kDigits, request.get(), "{\"inputs\": [\"/nowhere\"]}", &text))
          .code,
      ADDEND_NOT_FOUND);
  EXPECT_EQ(
      Outcome(addend_job_plan(nullptr, path.c_str(), "/nowhere", request.get(), ("{" + inputs + "}").c_str(), &text))
          .code,
      ADDEND_NOT_FOUND);
  EXPECT_EQ(
      Outcome(addend_job_plan(nullptr, "/nowhere/plan", kDigits, request.get(), ("{" + inputs + "}").c_str(), &text))
          .code,
      ADDEND_NOT_FOUND);
  EXPECT_EQ(Outcome(addend_job_open("/nowhere/plan", &none)).code, ADDEND_NOT_FOUND);
  EXPECT_EQ(Outcome(addend_job_open(kDigits, &none)).code, ADDEND_INVALID_ARGUMENT);
  EXPECT_EQ(Outcome(addend_job_open(kNoUtf8, &none)).code, ADDEND_INVALID_ARGUMENT);
  EXPECT_EQ(Outcome(addend_job_status("/nowhere/plan", &text)).code, ADDEND_NOT_FOUND);
  const Job job(JobPlan("options"));
  for (const int64_t shard : {int64_t{-1}, int64_t{1}, std::numeric_limits<int64_t>::max()}) {
    EXPECT_EQ(Outcome(addend_job_run(job.get(), shard, nullptr, &text)).code, ADDEND_INVALID_ARGUMENT) << shard;
  }
  EXPECT_EQ(Outcome(addend_job_run(job.get(), 0, "{\"again\": 1}", &text)).code, ADDEND_INVALID_ARGUMENT);
  EXPECT_EQ(Outcome(addend_job_merge((testing::TempDir() + "/options.json").c_str(), &text)).code,
            ADDEND_FAILED_PRECONDITION);
}

TEST_F(HostileTest, OptionsOfLogsOfDecisions) {
  const std::string path = testing::TempDir() + "/options.log";
  addend_audit_log* none = nullptr;
  for (const char* options : {"[]", "{", "{\"keep\": true}", "{\"keep_inputs\": 1}"}) {
    EXPECT_EQ(Outcome(addend_audit_log_open(path.c_str(), options, &none)).code, ADDEND_INVALID_ARGUMENT) << options;
  }
  EXPECT_EQ(Outcome(addend_audit_log_open(kNoUtf8, nullptr, &none)).code, ADDEND_INVALID_ARGUMENT);
  EXPECT_EQ(Outcome(addend_audit_log_open("/nowhere/log", nullptr, &none)).code, ADDEND_NOT_FOUND);
  const AuditLog log(path);
  const Attribution attribution = Model::Load(kDigits).Attribute(DigitRequest());
  addend_string* text = nullptr;
  for (const char* options : {"[]", "{\"salt\": \"00\"}", "{\"salt\": 1}", "{\"time\": \"now\"}", "{\"contexts\": 1}",
                              "{\"context\": 9007199254740993}", "{\"model_sha256\": \"0\"}", "{\"context\": 1e999}"}) {
    EXPECT_EQ(Outcome(addend_audit_log_append(log.get(), attribution.get(), options, &text)).code,
              ADDEND_INVALID_ARGUMENT)
        << options;
  }
  for (const char* options : {"[]", "{\"sample\": -1}", "{\"sample\": 1.5}", "{\"models\": \"a\"}", "{\"model\": []}",
                              "{\"expect\": \"a\"}", "{\"sample\": 1}"}) {
    EXPECT_EQ(Outcome(addend_audit_verify(path.c_str(), options, &text)).code, ADDEND_INVALID_ARGUMENT) << options;
  }
  // No record was appended.
  EXPECT_NE(log.State().find("\"records\":0,"), std::string::npos);
  EXPECT_EQ(text, nullptr);
}

TEST_F(HostileTest, HandlesOfAnotherKind) {
  const Tensor tensor = Tensor::Copy<float>({1}, {1});
  auto* wrong = reinterpret_cast<addend_composition*>(tensor.get());
  addend_string* none = nullptr;
  EXPECT_EQ(Outcome(addend_composition_to_string(wrong, &none)).message,
            "composition was released, or is no addend_composition");
  addend_composition_release(wrong);
  EXPECT_EQ(addend_tensor_num_dims(tensor.get()), 1u);
}

// Whoever keeps a handle too long, or releases it again, meets nobody else's object.
TEST_F(HostileTest, AReleasedHandleIsRefusedForEver) {
  constexpr int64_t kLater = 10000;
  const auto make = [](int64_t number) {
    addend_tensor* tensor = nullptr;
    ExpectOk(addend_tensor_copy(&number, sizeof(number), ADDEND_INT64, nullptr, 0, &tensor));
    return tensor;
  };
  addend_tensor* released = make(-1);
  addend_tensor_release(released);
  std::vector<addend_tensor*> later;
  // One after the other, then all together.
  for (int64_t number = 0; number < 2 * kLater; ++number) {
    addend_tensor* tensor = make(number);
    ASSERT_NE(tensor, released) << number;
    ASSERT_EQ(addend_tensor_data(released), nullptr) << number;
    addend_tensor_release(released);
    ASSERT_EQ(addend_tensor_dtype(tensor), ADDEND_INT64) << number;
    if (number < kLater) {
      addend_tensor_release(tensor);
    } else {
      later.push_back(tensor);
    }
  }
  addend_string* none = nullptr;
  EXPECT_EQ(Outcome(addend_tensor_to_string(released, &none)).message, "tensor was released, or is no addend_tensor");
  for (int64_t k = 0; k < kLater; ++k) {
    EXPECT_EQ(*static_cast<const int64_t*>(addend_tensor_data(later[k])), kLater + k);
    addend_tensor_release(later[k]);
  }
}

TEST_F(HostileTest, WhatNeverWasAHandle) {
  const int own = 0;
  const auto address = reinterpret_cast<uintptr_t>(&own);
  for (const uintptr_t value : {uintptr_t{1}, uintptr_t{4096}, ~uintptr_t{0}, uintptr_t{1} << 31, address, ~address}) {
    const Handles junk = All(value);
    for (const auto& [name, call] : CallsOn(junk)) {
      SCOPED_TRACE(name);
      EXPECT_EQ(Outcome(call()).code, ADDEND_INVALID_ARGUMENT);
    }
    ExpectNothing(junk);
    ReleaseAll(junk);
  }
}

TEST_F(HostileTest, NullOutParameters) {
  const Tensor tensor = Tensor::Copy<float>({1, 2}, {2, 1});
  const Composition composition = Composition::FromTensors(tensor);
  const Request request = DigitRequest();
  const Model model = Model::Load(kDigits);
  const Attribution attribution = model.Attribute(request);
  const Program program = model.Record(request);
  const AuditLog log(testing::TempDir() + "/out.log");
  const Job job(JobPlan("out"));
  const TensorFile file = TensorFile::Create();
  const Arguments arguments = [&] {
    Arguments list;
    list.Add(composition);
    return list;
  }();
  const int64_t dims[] = {2};
  const float numbers[] = {1, 2};
  for (const auto& call : std::vector<std::function<addend_status*()>>{
           [] { return addend_cancellation_create(nullptr); },
           [&] { return addend_model_methods(model.get(), "forward", nullptr); },
           [&] { return addend_model_requirements(nullptr, model.get(), request.get(), nullptr); },
           [&] { return addend_program_requirements(nullptr, program.get(), request.get(), nullptr); },
           [&] { return addend_program_to(program.get(), ADDEND_FLOAT64, nullptr); },
           [] { return addend_context_options_create(nullptr); },
           [] { return addend_context_policy(nullptr, nullptr); },
           [&] { return addend_tensor_copy(numbers, 8, ADDEND_FLOAT32, dims, 1, nullptr); },
           [&] { return addend_tensor_to_dlpack(tensor.get(), 1, nullptr, nullptr); },
           [&] { return addend_tensor_to_libtorch(tensor.get(), nullptr); },
           [&] { return addend_tensor_from_libtorch(&tensor, nullptr); },
           [&] { return addend_tensor_to(tensor.get(), 0, nullptr, nullptr); },
           [] { return addend_tensor_file_create(nullptr); },
           [&] { return addend_tensor_file_encode(file.get(), nullptr); },
           [&] { return addend_composition_from_tensors(tensor.get(), nullptr, nullptr, 0, nullptr); },
           [&] { return addend_composition_part(composition.get(), 0, nullptr); },
           [&] { return addend_composition_explain(composition.get(), "top1", nullptr); },
           [] { return addend_audit_log_open("/nowhere/log", nullptr, nullptr); },
           [&] { return addend_audit_log_append(log.get(), attribution.get(), nullptr, nullptr); },
           [&] { return addend_audit_log_state(log.get(), nullptr); },
           [] { return addend_audit_verify("/nowhere/log", nullptr, nullptr); },
           [&] { return addend_job_plan(nullptr, "plan", kDigits, request.get(), nullptr, nullptr); },
           [] { return addend_job_open("/nowhere/plan", nullptr); },
           [&] { return addend_job_run(job.get(), 0, nullptr, nullptr); },
           [] { return addend_job_status("/nowhere/plan", nullptr); },
           [] { return addend_job_merge("/nowhere/plan", nullptr); },
           [] { return addend_request_create(nullptr); },
           [] { return addend_model_load(kDigits, 0, nullptr); },
           [] { return addend_model_sha256(kDigits, nullptr); },
           [&] { return addend_model_decompose(nullptr, model.get(), request.get(), nullptr); },
           [&] { return addend_model_run(model.get(), request.get(), nullptr); },
           [&] { return addend_model_attribute(nullptr, model.get(), request.get(), nullptr); },
           [&] { return addend_model_record(model.get(), request.get(), nullptr); },
           [&] { return addend_model_check_trace(model.get(), request.get(), nullptr, nullptr); },
           [&] { return addend_attribution_explain(attribution.get(), 0, nullptr); },
           [&] { return addend_attribution_results(attribution.get(), nullptr); },
           [&] { return addend_attribution_json(attribution.get(), nullptr); },
           [&] { return addend_attribution_html(attribution.get(), nullptr); },
           [] { return addend_program_load("/nowhere", nullptr); },
           [&] { return addend_program_model(program.get(), nullptr); },
           [&] { return addend_program_replay(program.get(), request.get(), nullptr, nullptr); },
           [&] { return addend_program_summary(program.get(), nullptr); },
           [&] { return addend_program_code_text(program.get(), nullptr, nullptr); },
           [&] { return addend_program_code_json(program.get(), nullptr, nullptr); },
           [&] { return addend_program_graph_json(program.get(), nullptr, nullptr); },
           [&] { return addend_program_graph_dot(program.get(), nullptr, nullptr); },
           [&] { return addend_program_graph_html(program.get(), nullptr, nullptr); },
           [&] { return addend_trace_begin(nullptr, request.get(), nullptr); },
           [&] { return addend_trace_record(request.get(), nullptr, nullptr, nullptr, nullptr); },
           [] { return addend_arguments_create(nullptr); },
           [&] { return addend_call(nullptr, "aten::relu", arguments.get(), nullptr); },
           [] { return addend_rules_create(nullptr); },
       }) {
    const Outcome outcome(call());
    EXPECT_EQ(outcome.code, ADDEND_INVALID_ARGUMENT) << outcome.message;
    EXPECT_EQ(outcome.message.substr(0, 4), "out_") << outcome.message;
  }
}

TEST_F(HostileTest, TextThatIsNone) {
  const Tensor tensor = Tensor::Copy<float>({1, 2}, {2, 1});
  const Composition composition = Composition::FromTensors(tensor);
  Request request;
  request.Input(tensor);
  Arguments arguments;
  addend_context_options* options = nullptr;
  ExpectOk(addend_context_options_create(&options));
  const Handle<addend_context_options, addend_context_options_release> owner(options);
  addend_model* model = nullptr;
  addend_string* digest = nullptr;
  addend_program* program = nullptr;
  addend_tensor_file* file = nullptr;
  addend_results* results = nullptr;
  addend_explanation* explanation = nullptr;
  addend_tensor* moved = nullptr;
  for (const char* text : {kNoUtf8, "\xFF", "\xC0\xAF", "\xED\xA0\x80", "\xF5\x80\x80\x80", "\xE2\x82", "a\x80"}) {
    for (const auto& call : std::vector<std::function<addend_status*()>>{
             [&] { return addend_model_load(text, 0, &model); },
             [&] { return addend_model_sha256(text, &digest); },
             [&] { return addend_tensor_file_read(text, &file); },
             [&] { return addend_tensor_file_decode("", 0, text, &file); },
             [&] { return addend_context_options_set_policy(options, text, "fast"); },
             [&] { return addend_context_options_set_policy(options, "preset", text); },
             [&] { return addend_composition_explain(composition.get(), text, &explanation); },
             [&] { return addend_request_add_input(request.get(), text, tensor.get()); },
             [&] { return addend_request_add_inside(request.get(), text); },
             [&] { return addend_request_add_name(request.get(), text); },
             [&] { return addend_request_add_probe(request.get(), text); },
             [&] { return addend_request_add_buffer(request.get(), text, tensor.get()); },
             [&] { return addend_request_add_target(request.get(), text); },
             [&] { return addend_request_set_option(request.get(), "at", text); },
             [&] { return addend_program_load(text, &program); },
             [&] { return addend_request_add_parameter(request.get(), text, tensor.get()); },
             [&] { return addend_arguments_add_str(arguments.get(), nullptr, text); },
             [&] { return addend_arguments_add_i64(arguments.get(), text, 1); },
             [&] { return addend_call(nullptr, text, arguments.get(), &results); },
             [&] { return addend_tensor_to(tensor.get(), 0, text, &moved); },
         }) {
      const Outcome outcome(call());
      EXPECT_EQ(outcome.code, ADDEND_INVALID_ARGUMENT);
      EXPECT_NE(outcome.message.find("is no UTF-8"), std::string::npos) << outcome.message;
    }
  }
  // UTF-8 may say anything.
  EXPECT_EQ(Outcome(addend_tensor_to(tensor.get(), 0, "nowhere:7", &moved)).code, ADDEND_INVALID_ARGUMENT);
  EXPECT_NE(Outcome(addend_tensor_to(tensor.get(), 0, "cuda:99", &moved)).code, ADDEND_OK);
  EXPECT_EQ(Outcome(addend_tensor_to(tensor.get(), 12345, nullptr, &moved)).code, ADDEND_INVALID_ARGUMENT);
  ExpectOk(addend_request_add_name(request.get(), "\xF0\x9F\x98\x80 \xE2\x82\xAC"));
}

TEST_F(HostileTest, NumbersThatFitNothing) {
  const Tensor tensor = Tensor::Copy<float>({1, 2}, {2, 1});
  Request request;
  EXPECT_EQ(Outcome(addend_request_set_baseline_number(request.get(), 0)).code, ADDEND_FAILED_PRECONDITION);
  request.Input(tensor);
  const int64_t far[] = {5};
  EXPECT_EQ(Outcome(addend_request_split_dims(request.get(), far, 1)).message,
            "input 0 has 2 dimensions, but dims holds 5");
  EXPECT_EQ(Outcome(addend_request_split_dims(request.get(), far, 0)).code, ADDEND_INVALID_ARGUMENT);
  EXPECT_EQ(Outcome(addend_request_split_dims(request.get(), nullptr, 1)).code, ADDEND_INVALID_ARGUMENT);
  EXPECT_EQ(Outcome(addend_request_set_baseline_number(request.get(), NAN)).code, ADDEND_INVALID_ARGUMENT);
  EXPECT_EQ(Outcome(addend_request_set_first_component(request.get(), -2)).code, ADDEND_INVALID_ARGUMENT);
  EXPECT_EQ(Outcome(addend_request_set_first_component(request.get(), INT64_MAX)).code, ADDEND_INVALID_ARGUMENT);
  addend_composition* none = nullptr;
  const int64_t dims[] = {0};
  const auto diagonal = [&](int64_t offset, int64_t numc) {
    return Outcome(addend_composition_diagonal(tensor.get(), dims, 1, nullptr, offset, numc, &none)).code;
  };
  EXPECT_NE(diagonal(-3, -1), ADDEND_OK);
  EXPECT_NE(diagonal(INT64_MAX, -1), ADDEND_OK);
  EXPECT_NE(diagonal(0, INT64_MAX), ADDEND_OK);
  EXPECT_NE(diagonal(0, INT64_MIN), ADDEND_OK);
  EXPECT_EQ(Outcome(addend_composition_from_labels(tensor.get(), tensor.get(), nullptr, -1, &none)).code,
            ADDEND_INVALID_ARGUMENT);
  const Composition composition = Composition::FromTensors(tensor);
  const int64_t indices[] = {7, INT64_MIN};
  EXPECT_NE(Outcome(addend_composition_select(composition.get(), indices, 2, 1, &none)).code, ADDEND_OK);
  addend_explanation* explanation = nullptr;
  for (const char* target : {"", "x", "9", "-", "1,2,3,4", "99999999999999999999", "0-", "top2"}) {
    EXPECT_EQ(Outcome(addend_composition_explain(composition.get(), target, &explanation)).code,
              ADDEND_INVALID_ARGUMENT)
        << target;
    // Whether an element is there shows in the run.
    if (std::string(target) == "9" || std::string(target) == "1,2,3,4") continue;
    EXPECT_EQ(Outcome(addend_request_add_target(request.get(), target)).code, ADDEND_INVALID_ARGUMENT) << target;
  }
  EXPECT_EQ(Outcome(addend_set_num_threads(0)).code, ADDEND_INVALID_ARGUMENT);
  EXPECT_EQ(addend_debug_live(-1), -1);
  EXPECT_EQ(addend_debug_live(ADDEND_HANDLE_PLAN + 1), -1);
}

TEST_F(HostileTest, FilesThatEndEarlyOrAreDamaged) {
  const std::string sample = Content(kDigitsSample);
  const std::string model = Content(kDigits);
  ASSERT_GT(sample.size(), 100u);
  addend_tensor_file* file = nullptr;
  for (size_t size = 0; size < sample.size(); size += 1 + size / 8) {
    EXPECT_EQ(Outcome(addend_tensor_file_decode(sample.data(), size, "cut", &file)).code, ADDEND_INVALID_ARGUMENT)
        << size;
  }
  addend_model* none = nullptr;
  for (size_t size = 0; size < model.size(); size += 1 + size / 4) {
    EXPECT_EQ(Outcome(addend_model_load_bytes(model.data(), size, 0, &none)).code, ADDEND_INVALID_ARGUMENT) << size;
  }
  EXPECT_EQ(Outcome(addend_model_load_bytes(nullptr, 4, 0, &none)).code, ADDEND_INVALID_ARGUMENT);
  EXPECT_EQ(Outcome(addend_model_load(kDigits, ADDEND_INT64, &none)).code, ADDEND_INVALID_ARGUMENT);
  EXPECT_EQ(Outcome(addend_model_load("/nowhere", 0, &none)).code, ADDEND_NOT_FOUND);
  EXPECT_EQ(Outcome(addend_model_load("/tmp", 0, &none)).code, ADDEND_INVALID_ARGUMENT);
  addend_string* text = nullptr;
  EXPECT_EQ(Outcome(addend_model_sha256("/nowhere", &text)).code, ADDEND_NOT_FOUND);
  EXPECT_EQ(Outcome(addend_model_sha256(nullptr, &text)).code, ADDEND_INVALID_ARGUMENT);
  EXPECT_EQ(text, nullptr);
  EXPECT_EQ(Outcome(addend_tensor_file_read("/tmp", &file)).code, ADDEND_INVALID_ARGUMENT);
}

TEST_F(HostileTest, OptionsThatAreNone) {
  const Program program = Model::Load(kDigits).Record(DigitRequest());
  const Request request = DigitRequest();
  addend_string* text = nullptr;
  addend_results* results = nullptr;
  // Copies and writers of a value call themselves for each level.
  const std::string nested = std::string(300000, '[') + std::string(300000, ']');
  const std::string deep = "{\"names\": " + nested + "}";
  for (const char* options :
       {"", "{", "[]", "null", "1", "{\"names\": 1}", "{\"include\": \"x\"}", "{\"include\": [1]}",
        "{\"unknown\": true}", "{\"numbers\": 1}", "{\"numbers\": [1]}", "{\"numbers\": [{}]}",
        "{\"numbers\": [{\"name\": \"a\", \"values\": []}]}", "{\"numbers\": [{\"name\": \"a\", \"values\": [\"b\"]}]}",
        "{\"numbers\": [{\"name\": \"a\", \"unit\": \"miles\", \"values\": []}]}", kNoUtf8, deep.c_str()}) {
    SCOPED_TRACE(std::string(options).substr(0, 80));
    EXPECT_EQ(Outcome(addend_program_code_text(program.get(), options, &text)).code, ADDEND_INVALID_ARGUMENT);
    EXPECT_EQ(Outcome(addend_program_code_json(program.get(), options, &text)).code, ADDEND_INVALID_ARGUMENT);
    EXPECT_EQ(Outcome(addend_program_graph_json(program.get(), options, &text)).code, ADDEND_INVALID_ARGUMENT);
    EXPECT_EQ(Outcome(addend_program_graph_dot(program.get(), options, &text)).code, ADDEND_INVALID_ARGUMENT);
    EXPECT_EQ(Outcome(addend_program_graph_html(program.get(), options, &text)).code, ADDEND_INVALID_ARGUMENT);
    EXPECT_EQ(Outcome(addend_program_replay(program.get(), request.get(), options, &results)).code,
              ADDEND_INVALID_ARGUMENT);
    EXPECT_EQ(Outcome(addend_model_check_trace(program.AsModel().get(), request.get(), options, &text)).code,
              ADDEND_INVALID_ARGUMENT);
  }
  EXPECT_EQ(Outcome(addend_program_replay(program.get(), request.get(), "{\"values\": [\"nowhere\"]}", &results)).code,
            ADDEND_NOT_FOUND);
  EXPECT_EQ(
      Outcome(addend_model_check_trace(program.AsModel().get(), request.get(), "{\"tolerance\": -1}", &text)).code,
      ADDEND_INVALID_ARGUMENT);
  EXPECT_EQ(text, nullptr);
  EXPECT_EQ(results, nullptr);
  addend_explanation* explanation = nullptr;
  const std::string document = "{\"format\": \"addend.explanation\", \"targets\": " + nested + "}";
  EXPECT_EQ(Outcome(addend_explanation_read(document.c_str(), &explanation)).code, ADDEND_INVALID_ARGUMENT);
  const std::string reasons = "{\"format\": \"addend.reasons\", \"decisions\": " + nested + "}";
  EXPECT_EQ(Outcome(addend_reasons_html(reasons.c_str(), &text)).code, ADDEND_INVALID_ARGUMENT);
}

TEST_F(HostileTest, ProgramsThatEndEarlyOrAreDamaged) {
  const std::string folder = testing::TempDir() + "/hostile_program";
  Model::Load(kDigits).Record(DigitRequest()).Save(folder);
  addend_program* none = nullptr;
  for (const char* name : {"/program.json", "/weights.safetensors"}) {
    const std::string whole = Content(folder + name);
    ASSERT_GT(whole.size(), 100u);
    for (size_t size = 0; size < whole.size(); size += 1 + size / 2) {
      std::ofstream(folder + name, std::ios::binary | std::ios::trunc) << whole.substr(0, size);
      EXPECT_EQ(Outcome(addend_program_load(folder.c_str(), &none)).code, ADDEND_INVALID_ARGUMENT) << name << size;
    }
    std::ofstream(folder + name, std::ios::binary | std::ios::trunc) << whole;
  }
  EXPECT_EQ(Outcome(addend_program_load("/nowhere", &none)).code, ADDEND_NOT_FOUND);
  EXPECT_EQ(none, nullptr);
  const Program program = Program::Load(folder);
  EXPECT_NE(Outcome(addend_program_save(program.get(), "/dev/null/program")).code, ADDEND_OK);
}

TEST_F(HostileTest, RequestsThatFitNoModel) {
  const Model model = Model::Load(kDigits);
  const auto decompose = [&](const Request& request) {
    addend_results* none = nullptr;
    const Outcome outcome(addend_model_decompose(nullptr, model.get(), request.get(), &none));
    EXPECT_EQ(none, nullptr);
    return outcome;
  };
  const Tensor image = TensorFile::Read(kDigitsSample).tensor("input");
  EXPECT_EQ(decompose(Request()).code, ADDEND_INVALID_ARGUMENT);
  Request plain;
  plain.Input(image);
  EXPECT_EQ(decompose(plain).code, ADDEND_INVALID_ARGUMENT);
  Request shape;
  shape.Input(Tensor::Copy<float>({1, 2}, {1, 2})).SplitAlong({1});
  EXPECT_EQ(decompose(shape).code, ADDEND_INVALID_ARGUMENT);
  Request twice;
  twice.Input(image).SplitAlong({2, 3}).Input(image).SplitAlong({2, 3});
  EXPECT_EQ(decompose(twice).code, ADDEND_INVALID_ARGUMENT);
  Request names = DigitRequest();
  for (int k = 0; k < 65; ++k) names.Name("pixel");
  EXPECT_EQ(decompose(names).message, "input 0 has 64 components, but 65 names");
  Request parts;
  parts.Input(image).SplitIntoParts(image);
  EXPECT_EQ(decompose(parts).code, ADDEND_INVALID_ARGUMENT);
}

}  // namespace
}  // namespace addend::api
