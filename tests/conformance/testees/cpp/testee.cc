// The testee of the conformance suite in C++, over addend.hpp: executes requests of PROTOCOL.md and expects nothing.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <sstream>
#include <thread>

#ifdef ADDEND_INSTALLED
#include <addend/addend.hpp>
#else
#include "c_api/addend.hpp"
#endif

namespace {

using namespace addend::api;

std::string device = "cpu";

// ---- Texts

std::vector<std::string> Pieces(const std::string& text, char separator) {
  std::vector<std::string> pieces;
  if (text.empty()) return pieces;
  std::stringstream stream(text + separator);
  for (std::string piece; std::getline(stream, piece, separator);) pieces.push_back(piece);
  return pieces;
}

std::vector<int64_t> Integers(const std::string& text) {
  std::vector<int64_t> numbers;
  for (const std::string& piece : Pieces(text, ',')) numbers.push_back(std::stoll(piece));
  return numbers;
}

double NumberOf(const std::string& digits) {
  const uint64_t bits = std::stoull(digits, nullptr, 16);
  double number = 0;
  std::memcpy(&number, &bits, sizeof(number));
  return number;
}

std::string DigitsOf(double number) {
  uint64_t bits = 0;
  std::memcpy(&bits, &number, sizeof(bits));
  char digits[17];
  std::snprintf(digits, sizeof(digits), "%016llx", static_cast<unsigned long long>(bits));
  return digits;
}

int32_t DtypeOf(const std::string& name) {
  static const std::map<std::string, int32_t> kDtypes = {
      {"float64", ADDEND_FLOAT64}, {"float32", ADDEND_FLOAT32},     {"float16", ADDEND_FLOAT16},
      {"int64", ADDEND_INT64},     {"int32", ADDEND_INT32},         {"bfloat16", ADDEND_BFLOAT16},
      {"int16", ADDEND_INT16},     {"int8", ADDEND_INT8},           {"uint8", ADDEND_UINT8},
      {"bool", ADDEND_BOOL},       {"complex64", ADDEND_COMPLEX64}, {"complex128", ADDEND_COMPLEX128}};
  return name.empty() ? 0 : kDtypes.at(name);
}

std::string CodeName(int32_t code) {
  static const std::map<int32_t, std::string> kCodes = {{ADDEND_CANCELLED, "CANCELLED"},
                                                        {ADDEND_INVALID_ARGUMENT, "INVALID_ARGUMENT"},
                                                        {ADDEND_NOT_FOUND, "NOT_FOUND"},
                                                        {ADDEND_RESOURCE_EXHAUSTED, "RESOURCE_EXHAUSTED"},
                                                        {ADDEND_FAILED_PRECONDITION, "FAILED_PRECONDITION"},
                                                        {ADDEND_OUT_OF_RANGE, "OUT_OF_RANGE"},
                                                        {ADDEND_UNIMPLEMENTED, "UNIMPLEMENTED"},
                                                        {ADDEND_INTERNAL, "INTERNAL"}};
  const auto found = kCodes.find(code);
  return found == kCodes.end() ? "UNKNOWN" : found->second;
}

// ---- Tensors

// Copies numbers through memory of this program.
Tensor ThroughMemory(const Tensor& tensor) {
  switch (tensor.dtype()) {
    case ADDEND_FLOAT64:
      return Tensor::Copy(tensor.To<double>(), tensor.sizes());
    case ADDEND_FLOAT32:
      return Tensor::Copy(tensor.To<float>(), tensor.sizes());
    case ADDEND_INT64:
      return Tensor::Copy(tensor.To<int64_t>(), tensor.sizes());
    case ADDEND_INT32:
      return Tensor::Copy(tensor.To<int32_t>(), tensor.sizes());
    default:
      return tensor;
  }
}

Tensor On(const std::string& where, const Tensor& tensor) {
  addend_tensor* moved = nullptr;
  Check(addend_tensor_to(tensor.get(), 0, where.c_str(), &moved));
  return Tensor(moved);
}

Tensor Plain(const char* op, const Tensor& tensor) { return Call(op, Arguments().Add(tensor)).tensor(); }

bool IsComplex(const Tensor& tensor) {
  return tensor.dtype() == ADDEND_COMPLEX64 || tensor.dtype() == ADDEND_COMPLEX128;
}

class Frame {
 public:
  explicit Frame(const std::string& blob) : file_(TensorFile::Decode(blob, "request")) {
    for (const std::string& name : file_.names()) names_.insert(name);
    for (const std::string& name : Lines("complex")) complex_.insert(name);
    for (const std::string& name : Lines("host")) host_.insert(name);
  }
  std::string Text(const std::string& key) const { return file_.metadata(key); }
  std::vector<std::string> Lines(const std::string& key) const { return Pieces(Text(key), '\n'); }
  // The entries of a list, each with so many fields.
  std::vector<std::vector<std::string>> Entries(const std::string& key, size_t fields) const {
    std::vector<std::vector<std::string>> entries;
    for (const std::string& line : Lines(key)) {
      entries.push_back(Pieces(line, '\t'));
      entries.back().resize(fields);
    }
    return entries;
  }
  int64_t Integer(const std::string& key, int64_t otherwise) const {
    return Text(key).empty() ? otherwise : std::stoll(Text(key));
  }
  bool Has(const std::string& name) const { return names_.count(name) != 0; }
  Tensor Raw(const std::string& name) const { return file_.tensor(name); }
  Tensor Get(const std::string& name) const {
    Tensor tensor = ThroughMemory(Raw(name));
    if (complex_.count(name) != 0) tensor = Plain("aten::view_as_complex", tensor);
    return device == "cpu" || host_.count(name) != 0 ? tensor : On(device, tensor);
  }
  Tensor Optional(const std::string& name) const { return Has(name) ? Get(name) : Tensor(); }

 private:
  TensorFile file_;
  std::set<std::string> names_;
  std::set<std::string> complex_;
  std::set<std::string> host_;
};

class Answer {
 public:
  void Set(const std::string& key, const std::string& text) { texts_[key] = text; }
  void Append(const std::string& key, const std::string& line) {
    const auto [entry, is_new] = texts_.emplace(key, line);
    if (!is_new) entry->second += "\n" + line;
  }
  void Add(const std::string& name, const Tensor& tensor) {
    Tensor real = tensor;
    if (IsComplex(tensor)) {
      Append("complex", name);
      real = Plain("aten::view_as_real", Plain("aten::resolve_conj", tensor));
    }
    tensors_[name] = ThroughMemory(real.device() == "cpu" ? real : On("cpu", real));
  }
  // One result, under keys that begin with `key`.
  void AddComposition(const std::string& key, const std::string& name, const Composition& composition,
                      const std::string& parts) {
    Append("results", "composition\t" + name + "\t" + key);
    for (const std::string& part : Pieces(parts.empty() ? "components reference leftover value" : parts, ' ')) {
      Add(key + "." + part, Part(composition, part));
    }
  }
  void AddResults(const std::string& prefix, const Results& results, const std::string& parts) {
    for (size_t k = 0; k < results.size(); ++k) {
      const std::string key = prefix + std::to_string(k);
      switch (results.kind(k)) {
        case ADDEND_RESULT_COMPOSITION:
          AddComposition(key, results.name(k), results.composition(k), parts);
          break;
        case ADDEND_RESULT_TENSOR:
          Append("results", "tensor\t" + results.name(k) + "\t" + key);
          Add(key, results.tensor(k));
          break;
        case ADDEND_RESULT_NUMBER:
          Append("results", "number\t" + results.name(k) + "\t" + DigitsOf(results.number(k)));
          break;
        default:
          Append("results", "none\t" + results.name(k) + "\t");
      }
    }
  }
  std::string Encode() const {
    TensorFile file = TensorFile::Create();
    for (const auto& [name, tensor] : tensors_) file.Add(name, tensor);
    for (const auto& [key, text] : texts_) file.SetMetadata(key, text);
    return file.Encode();
  }

  static Tensor Part(const Composition& composition, const std::string& part) {
    if (part == "components") return composition.components();
    if (part == "reference") return composition.reference();
    if (part == "leftover") return composition.leftover();
    if (part == "residual") return composition.residual();
    if (part == "recovery") return composition.recovery();
    return composition.value();
  }

 private:
  std::map<std::string, std::string> texts_;
  std::map<std::string, Tensor> tensors_;
};

// ---- What requests speak of

Composition MakeComposition(const Frame& request, const std::string& key) {
  const std::string make = request.Text(key + ".make");
  if (make == "tensors") {
    return Composition::FromTensors(request.Get(key + ".components"), request.Optional(key + ".reference"),
                                    request.Optional(key + ".leftover"));
  }
  const Tensor value = request.Get(key + ".value");
  const Tensor baseline = request.Optional(key + ".baseline");
  const int64_t numc = request.Integer(key + ".numc", -1);
  if (make == "labels") return Composition::FromLabels(value, request.Get(key + ".labels"), baseline, numc);
  return Composition::Diagonal(value, Integers(request.Text(key + ".dims")), baseline,
                               request.Integer(key + ".offset", 0), numc);
}

Context MakeContext(const Frame& request) {
  const auto policy = request.Entries("policy", 2);
  const int64_t stop_after = request.Integer("stop_after", 0);
  if (policy.empty() && stop_after == 0) return Context();
  addend_context_options* made = nullptr;
  Check(addend_context_options_create(&made));
  const Handle<addend_context_options, addend_context_options_release> options(made);
  for (const auto& choice : policy) {
    Check(addend_context_options_set_policy(made, choice[0].c_str(), choice[1].c_str()));
  }
  if (stop_after != 0) {
    const auto progress = [](void* payload, const char*, int64_t, int64_t) -> int32_t {
      return --*static_cast<int64_t*>(payload) == 0 ? 1 : 0;
    };
    Check(addend_context_options_set_progress(made, progress, new int64_t(stop_after),
                                              [](void* payload) { delete static_cast<int64_t*>(payload); }));
  }
  addend_context* context = nullptr;
  Check(addend_context_create(made, &context));
  return Context(context);
}

using Compositions = std::map<std::string, Composition>;

Arguments MakeArguments(const Frame& request, Compositions* compositions) {
  Arguments arguments;
  for (const auto& entry : request.Entries("args", 3)) {
    const std::string &kind = entry[0], &value = entry[2];
    const char* name = entry[1].empty() ? nullptr : entry[1].c_str();
    if (kind == "composition") {
      arguments.Add((*compositions)[value] = MakeComposition(request, value), name);
    } else if (kind == "tensor") {
      arguments.Add(request.Get(value), name);
    } else if (kind == "i64") {
      arguments.Add(int64_t{std::stoll(value)}, name);
    } else if (kind == "i64s") {
      arguments.Add(Integers(value), name);
    } else if (kind == "f64") {
      arguments.Add(NumberOf(value), name);
    } else if (kind == "bool") {
      arguments.Add(value == "1", name);
    } else if (kind == "str") {
      arguments.AddText(request.Text(value), name);
    } else if (kind == "dtype") {
      arguments.AddDtype(DtypeOf(value), name);
    } else if (kind == "list") {
      arguments.BeginList(name);
    } else if (kind == "end") {
      arguments.EndList();
    } else {
      arguments.AddNone(name);
    }
  }
  return arguments;
}

// The model of the last request: the next one is often about the same.
std::string last_model_name;
Model last_model;

void ForgetModel() {
  last_model = Model();
  last_model_name.clear();
}

Model There(const Model& model) { return device == "cpu" ? model : model.To(device); }

Model FromFile(const Frame& request) {
  const int32_t dtype = DtypeOf(request.Text("model_dtype"));
  if (!request.Has("model")) {
    const std::string name = request.Text("model") + "\n" + request.Text("model_dtype");
    if (name != last_model_name) {
      last_model = There(Model::Load(request.Text("model"), dtype));
      last_model_name = name;
    }
    return last_model;
  }
  const Tensor bytes = request.Raw("model");
  return There(Model::LoadBytes(addend_tensor_data(bytes.get()), static_cast<size_t>(bytes.sizes()[0]), dtype));
}

Request MakeRequest(const Frame& request) {
  Request made;
  for (const auto& entry : request.Entries("inputs", 2)) {
    const std::string& key = entry[1];
    made.Input(request.Get(key + ".value"), entry[0]);
    const std::string split = request.Text(key + ".split");
    if (split == "dims") made.SplitAlong(Integers(request.Text(key + ".dims")));
    if (split == "labels") made.SplitByLabels(request.Get(key + ".labels"));
    if (split == "parts") made.SplitIntoParts(request.Get(key + ".parts"));
    const std::string number = request.Text(key + ".baseline_number");
    if (!number.empty()) made.Baseline(NumberOf(number));
    if (request.Has(key + ".baseline")) made.Baseline(request.Get(key + ".baseline"));
    if (!request.Text(key + ".first").empty()) made.FirstComponent(request.Integer(key + ".first", 0));
    for (const std::string& name : request.Lines(key + ".names")) made.Name(name);
  }
  for (const std::string& probe : request.Lines("probes")) made.Probe(probe);
  if (request.Text("everything") == "1") made.Everything();
  if (!request.Text("direction").empty()) made.Direction(request.Text("direction"));
  if (request.Text("cancel") == "1") {
    addend_cancellation* cancellation = nullptr;
    Check(addend_cancellation_create(&cancellation));
    const Handle<addend_cancellation, addend_cancellation_release> owner(cancellation);
    addend_cancellation_cancel(cancellation);
    Check(addend_request_set_cancellation(made.get(), cancellation));
  }
  return made;
}

struct TemporaryFolder {
  TemporaryFolder() {
    if (mkdtemp(&path[0]) == nullptr) throw std::runtime_error("no folder can be made as " + path);
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  std::string path = (std::filesystem::temp_directory_path() / "addend_program_XXXXXX").string();
};

// A recorded program as a model, once it was a folder.
Model Recorded(const Model& model, const Request& request) {
  const TemporaryFolder folder;
  model.Record(request).Save(folder.path);
  return Program::Load(folder.path).AsModel();
}

Model LoadModel(const Frame& request, const Request& made) {
  const Model model = FromFile(request);
  return request.Text("program") == "1" ? Recorded(model, made) : model;
}

// Prepares a call or a decomposition once; each call of the function computes.
std::function<Results()> Prepare(const std::string& verb, const Frame& request, Compositions* compositions) {
  const Context context = MakeContext(request);
  if (verb == "call") {
    const Arguments arguments = MakeArguments(request, compositions);
    return [=, op = request.Text("op")] { return Call(op, arguments, context); };
  }
  const Request made = MakeRequest(request);
  const Model model = LoadModel(request, made);
  if (verb == "run") return [=] { return model.Run(made); };
  return [=] { return model.Decompose(made, context); };
}

// ---- Verbs

void Hello(const Frame& request, Answer* answer) {
  device = request.Text("device");
  Check(addend_check_libtorch());
  Check(addend_set_num_threads(static_cast<int32_t>(request.Integer("threads", 1))));
  On(device, Tensor::Copy<float>({1}, {1}));
  answer->Set("suite", "1");
  answer->Set("language", "cpp");
  answer->Set("library_version", addend_version());
  answer->Set("abi_version", std::to_string(addend_abi_version()));
  answer->Set("libtorch_version", addend_libtorch_version());
  answer->Set("device", device);
  answer->Set("devices", device == "cpu" ? "cpu" : "cpu " + device);
  answer->Set("dtypes", "float64 float32 float16 bfloat16 int64 int32 int16 int8 uint8 bool complex64 complex128");
  answer->Set("features",
              "models attribution directions distributions limits programs shapley explain threads lifecycle share "
              "stop read operators");
}

void AddExplanation(const std::string& key, const Explanation& told, Answer* answer) {
  std::vector<double> contributions;
  std::vector<int64_t> ranked;
  for (const auto& one : told.Top(told.numc())) ranked.push_back(one.component);
  for (int64_t k = 0; k < told.numc(); ++k) {
    contributions.push_back(addend_explanation_contribution(told.get(), k));
    answer->Append(key + ".names", addend_explanation_name(told.get(), k));
  }
  answer->Set(key + ".target", told.target());
  answer->Add(key + ".contributions", Tensor::Copy(contributions, {told.numc()}));
  answer->Add(key + ".ranked", Tensor::Copy(ranked, {told.numc()}));
  answer->Add(key + ".numbers",
              Tensor::Copy<double>(
                  {told.value(), told.reference(), told.leftover(), told.recovery(), told.recovery_error()}, {5}));
}

void Attribute(const Frame& request, Answer* answer) {
  Request made = MakeRequest(request);
  const Model model = LoadModel(request, made);
  for (const std::string& target : request.Lines("targets")) made.Target(target);
  made.Memory(request.Integer("memory_limit", 0));
  const Attribution attribution = model.Attribute(made, MakeContext(request));
  for (size_t k = 0; k < attribution.num_targets(); ++k) {
    AddExplanation("attribution." + std::to_string(k), attribution.Explain(k), answer);
  }
}

void Execute(const std::string& verb, const Frame& request, Answer* answer) {
  Compositions compositions;
  const std::string parts = request.Text("parts");
  const Results results = Prepare(verb, request, &compositions)();
  answer->AddResults("r", results, parts);
  if (request.Text("echo") == "1") {
    for (const auto& [key, composition] : compositions) {
      for (const char* part : {"components", "reference", "leftover"}) {
        answer->Add(key + "." + part, Answer::Part(composition, part));
      }
    }
  }
  if (verb != "decompose") return;
  for (const char* key : {"operators", "nodes", "worst_recovery_error", "worst_bracket", "failures", "absorbed",
                          "absorbed_failures", "path_ruled", "stand_in_references", "unattributed"}) {
    answer->Append("report", std::string(key) + "\t" + DigitsOf(results.report(key)));
  }
  for (const std::string& note : results.notes()) answer->Append("notes", note);
  int index = 0;
  for (const auto& entry : request.Entries("explain", 2)) {
    AddExplanation("explanation." + std::to_string(index++), results.Explain(entry[1], entry[0]), answer);
  }
}

void Threads(const Frame& request, Answer* answer) {
  Compositions compositions;
  const std::function<Results()> compute = Prepare(request.Text("inner_verb"), request, &compositions);
  std::vector<Results> results(static_cast<size_t>(request.Integer("count", 1)));
  std::vector<std::exception_ptr> errors(results.size());
  std::vector<std::thread> threads;
  for (size_t k = 0; k < results.size(); ++k) {
    threads.emplace_back([&, k] {
      try {
        results[k] = compute();
      } catch (...) {
        errors[k] = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
  for (size_t k = 0; k < results.size(); ++k) {
    answer->AddResults("t" + std::to_string(k) + "r", results[k], request.Text("parts"));
  }
}

void Lifecycle(const Frame& request, Answer* answer) {
  std::map<std::string, Composition> objects;
  ForgetModel();
  const int64_t before = addend_debug_live(ADDEND_HANDLE_ANY);
  for (const auto& step : request.Entries("steps", 4)) {
    std::string code = "OK";
    try {
      if (step[0] == "make") {
        objects[step[1]] = MakeComposition(request, step[1]);
      } else if (step[0] == "call") {
        objects[step[1]] = Call(step[2], Arguments().Add(objects[step[3]])).composition();
      } else if (step[0] == "read") {
        objects[step[1]].components();
      } else if (step[0] == "release") {
        objects[step[1]] = Composition();
      } else if (step[0] == "release_elsewhere") {
        std::thread([&] { objects[step[1]] = Composition(); }).join();
      } else {
        code = std::to_string(addend_debug_live(ADDEND_HANDLE_ANY) - before);
      }
    } catch (const Error& error) {
      code = CodeName(error.code());
    }
    answer->Append("codes", code);
  }
}

void Memory(const Frame& request, Answer* answer) {
  const std::vector<int64_t> sizes = request.Raw("data").sizes();
  std::vector<double> memory = request.Raw("data").To<double>();
  addend_tensor* shared = nullptr;
  Check(addend_tensor_wrap(memory.data(), memory.size() * sizeof(double), ADDEND_FLOAT64, sizes.data(), sizes.size(),
                           nullptr, 0, nullptr, nullptr, &shared));
  const Tensor owner(shared);
  const Tensor copied = Tensor::Copy(memory, sizes);
  const std::vector<double> after = request.Raw("after").To<double>();
  std::copy(after.begin(), after.end(), memory.begin());
  answer->Add("shared", owner);
  answer->Add("copied", copied);
}

void Read(const Frame& request, Answer* answer) {
  const Tensor bytes = request.Raw("file");
  const TensorFile file = TensorFile::Decode(
      std::string(static_cast<const char*>(addend_tensor_data(bytes.get())), static_cast<size_t>(bytes.sizes()[0])));
  for (const std::string& name : file.names()) {
    answer->Append("names", name);
    answer->Add("file." + name, file.tensor(name));
  }
}

void Dispatch(const std::string& verb, const Frame& request, Answer* answer) {
  if (verb == "hello") {
    Hello(request, answer);
  } else if (verb == "attribute") {
    Attribute(request, answer);
  } else if (verb == "call" || verb == "run" || verb == "decompose") {
    Execute(verb, request, answer);
  } else if (verb == "shapley") {
    Compositions compositions;
    const Composition values = request.Text("op").empty()
                                   ? FromFile(request).Shapley(MakeRequest(request))
                                   : Shapley(request.Text("op"), MakeArguments(request, &compositions));
    answer->AddComposition("r0", "", values, request.Text("parts"));
  } else if (verb == "threads") {
    Threads(request, answer);
  } else if (verb == "lifecycle") {
    Lifecycle(request, answer);
  } else if (verb == "memory") {
    Memory(request, answer);
  } else if (verb == "read") {
    Read(request, answer);
  } else if (verb == "operators") {
    for (size_t k = 0; k < addend_op_count(); ++k) {
      answer->Append("operators", std::string(addend_op_name(k)) + "\t" + addend_op_kind(k));
    }
  } else if (verb != "bye") {
    answer->Set("code", "PROTOCOL");
    answer->Set("message", "no verb is called " + verb);
  }
}

std::string Respond(const std::string& blob, bool* last) {
  std::string id, verb;
  Answer answer;
  answer.Set("code", "OK");
  try {
    const Frame request(blob);
    id = request.Text("id");
    verb = request.Text("verb");
    Dispatch(verb, request, &answer);
  } catch (const Error& error) {
    answer = Answer();
    answer.Set("code", CodeName(error.code()));
    answer.Set("message", error.what());
    for (const char* key : {"op", "module_path"}) {
      if (!error.payload(key).empty()) answer.Append("payload", std::string(key) + "\t" + error.payload(key));
    }
  } catch (const std::exception& error) {
    answer = Answer();
    answer.Set("code", "PROTOCOL");
    answer.Set("message", error.what());
  }
  if (verb == "stats") {
    answer = Answer();
    ForgetModel();
    answer.Set("code", "OK");
    answer.Set("live", std::to_string(addend_debug_live(ADDEND_HANDLE_ANY)));
  }
  *last = verb == "bye";
  answer.Set("id", id);
  return answer.Encode();
}

bool ReadFrame(std::string* blob, bool* ended) {
  unsigned char length[4];
  *ended = std::fread(length, 1, 4, stdin) != 4;
  if (*ended) return true;
  blob->resize(length[0] | length[1] << 8 | length[2] << 16 | static_cast<size_t>(length[3]) << 24);
  return std::fread(&(*blob)[0], 1, blob->size(), stdin) == blob->size();
}

}  // namespace

int main() {
  // Before LibTorch asks for it.
  setenv("NVIDIA_TF32_OVERRIDE", "0", 0);
  std::string blob;
  for (bool last = false; !last;) {
    bool ended = false;
    if (!ReadFrame(&blob, &ended)) return 1;
    if (ended) return 0;
    const std::string answer = Respond(blob, &last);
    const uint32_t size = static_cast<uint32_t>(answer.size());
    const unsigned char length[] = {static_cast<unsigned char>(size), static_cast<unsigned char>(size >> 8),
                                    static_cast<unsigned char>(size >> 16), static_cast<unsigned char>(size >> 24)};
    std::fwrite(length, 1, 4, stdout);
    std::fwrite(answer.data(), 1, answer.size(), stdout);
    std::fflush(stdout);
  }
  return 0;
}
