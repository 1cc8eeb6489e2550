// Exported programs (`.pt2`, torch.export) as they are read from a file: typed, checked, nothing run.
//
// The structs follow schema major 8 of torch/_export/serde/schema.py. Its tagged unions of arguments are reduced to
// what an interpreter has to tell apart: constants, values by name, lists and graphs.
#ifndef ADDEND_CORE_EXPORTED_PROGRAM_H_
#define ADDEND_CORE_EXPORTED_PROGRAM_H_

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace addend::weights {
class MappedFile;
}

namespace addend::exported {

struct Graph;

// One argument or result of a node.
struct Argument {
  enum class Kind {
    kConstant,  // None, bool, int, float, complex, string, device, or a list of one of these; dtype, layout and memory
                // format as the numbers of c10
    kValue,     // a tensor, symbolic number or custom object of the graph, by name; an unused result has no name
    kList,      // of arguments: tensors, optional tensors, symbolic numbers, lists of tensors
    kDict,      // of arguments by string
    kGraph,     // what a higher-order operator calls
    kOperator,  // an operator by name, which a higher-order operator calls
  };
  Kind kind = Kind::kConstant;
  std::string tag;                     // the schema's name of the alternative: "as_tensor", "as_sym_ints", ...
  c10::IValue constant;                // kConstant
  std::string name;                    // kValue: of the value; kGraph: of the graph; kOperator: of the operator
  std::vector<Argument> elements;      // kList; the values of kDict
  std::vector<std::string> keys;       // kDict
  std::shared_ptr<const Graph> graph;  // kGraph
};

// A size, stride or offset: a number, or an expression of symbols as sympy writes it ("Symbol('s0', integer=True)").
struct SymbolicInt {
  std::optional<int64_t> value;  // the number; of an expression, the one at the export, where the file has it
  std::string expression;        // empty for numbers
};

// Properties of a tensor at export. Sizes and strides are those of the export; nothing may be computed from them but
// checks of what a user passes.
struct TensorMeta {
  c10::ScalarType dtype = c10::ScalarType::Float;
  std::vector<SymbolicInt> sizes;
  std::vector<SymbolicInt> strides;
  SymbolicInt storage_offset;
  bool requires_grad = false;
  c10::Device device = c10::Device(c10::kCPU);
};

struct NamedArgument {
  std::string name;  // empty for higher-order operators
  Argument argument;
  // Files of schema 8.2 do not say it: then an argument is passed by its name where the schema has that name.
  enum class Pass { kNotSaid, kPositional, kKeyword };
  Pass pass = Pass::kNotSaid;
};

struct Node {
  std::string target;  // "torch.ops.aten.linear.default", "_operator.add", "torch.sym_max", ...
  std::string name;    // "linear_1"; empty in older files
  std::vector<NamedArgument> inputs;
  std::vector<Argument> outputs;
  bool is_single_tensor_return = false;         // of a higher-order operator
  std::map<std::string, std::string> metadata;  // "stack_trace", "nn_module_stack", "torch_fn", ...
};

struct Graph {
  std::vector<Argument> inputs;
  std::vector<Argument> outputs;
  std::vector<Node> nodes;
  bool is_single_tensor_return = false;
  std::map<std::string, TensorMeta> tensors;
  // Symbolic numbers of the graph by name; those without an expression are computed by nodes alone.
  std::map<std::string, SymbolicInt> symbolic_ints;
};

struct InputSpec {
  enum class Kind { kUserInput, kParameter, kBuffer, kTensorConstant, kCustomObject, kToken, kConstantInput };
  Kind kind = Kind::kUserInput;
  Argument argument;  // the placeholder of the graph; kUserInput may be a constant
  // kParameter, kBuffer, kTensorConstant, kCustomObject: in the state ("layers.0.weight"); kConstantInput: of the
  // input.
  std::string name;
  bool persistent = true;  // kBuffer
  c10::IValue value;       // kConstantInput: what was passed at export
};

struct OutputSpec {
  enum class Kind {
    kUserOutput,
    kLoss,
    kBufferMutation,
    kParameterMutation,
    kUserInputMutation,
    kGradientToParameter,
    kGradientToUserInput,
    kToken,
  };
  Kind kind = Kind::kUserOutput;
  Argument argument;
  std::string name;  // mutations and gradients: of the parameter, buffer or input
};

// How arguments or results are nested (torch.utils._pytree). A class that is no built-in container is a named
// structure.
struct TreeSpec {
  enum class Kind { kLeaf, kTuple, kList, kDict, kNamedTuple, kOther };
  Kind kind = Kind::kLeaf;
  std::string type;               // kNamedTuple, kOther: the class ("transformers.modeling_outputs.CausalLMOutput")
  std::vector<c10::IValue> keys;  // kDict: strings or numbers; kNamedTuple and kOther: names of fields, where known
  std::vector<TreeSpec> children;
};

struct RangeConstraint {
  std::optional<int64_t> min;
  std::optional<int64_t> max;
};

struct Program {
  int64_t schema_major = 0;
  int64_t schema_minor = 0;
  std::string torch_version;  // of the writer; empty in older files
  Graph graph;
  std::vector<InputSpec> inputs;
  std::vector<OutputSpec> outputs;
  TreeSpec in_spec;  // of (args, kwargs)
  TreeSpec out_spec;
  std::vector<std::string> forward_arg_names;
  std::map<std::string, RangeConstraint> ranges;  // by symbol: "s0"
  std::vector<std::string> guards;                // Python text; empty in files before 2.9
  // Parameters, buffers and constants by name. Names that are tied share their storage. Tensors may be mapped from the
  // file, copy-on-write: who writes to one changes neither the file nor what another process reads.
  std::map<std::string, at::Tensor> state;
  std::shared_ptr<const weights::MappedFile> file;  // which they are mapped from; null: from none
  std::vector<std::string> notes;  // what a reader has to know: "holds a compiled variant too, which is not used"
};

// Reads an archive of any of the three generations (torch 2.1 to 2.7, 2.8, 2.9 and later); reading runs nothing and
// opens no other file. Throws NotFound if there is no such file; InvalidArgument, with the path and the place in the
// file, for whatever is malformed or not of schema major 8; Unimplemented, by name, for compiled code only
// (AOTInductor), custom objects, Triton kernels, and pickled classes other than tensors.
Program ReadProgram(const std::string& path);
// Reads the bytes of an archive; `name` stands for the path in messages. Tensors of the result own their memory.
Program ReadProgramBytes(const void* data, size_t size, const std::string& name);
// Whether a file begins as an archive that holds an exported program; false where it cannot be read.
bool IsExportedProgram(const std::string& path);
// Like IsExportedProgram(), for the bytes of a file.
bool IsExportedProgramBytes(const void* data, size_t size);

}  // namespace addend::exported

#endif  // ADDEND_CORE_EXPORTED_PROGRAM_H_
