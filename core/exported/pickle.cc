#include "core/exported/pickle.h"

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <cstring>
#include <map>
#include <unordered_map>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/exported/refusals.h"
#include "core/exported/schema_enums.h"
#include "core/weights/storages.h"

namespace addend::exported {
namespace {

using weights::kMapNodeCost;
using weights::kTensorCost;
using weights::MakeStorage;
using weights::MakeTensor;
using weights::SharedStorage;
using weights::Strided;

constexpr char kPickle[] = "data.pkl";
constexpr size_t kLargestElement = 16;

// The opcodes that torch.save writes, with protocols 2 to 5.
enum Opcode : uint8_t {
  kProto = 0x80,
  kFrame = 0x95,
  kStop = '.',
  kMark = '(',
  kEmptyTuple = ')',
  kTuple = 't',
  kTuple1 = 0x85,
  kTuple2 = 0x86,
  kTuple3 = 0x87,
  kEmptyList = ']',
  kAppend = 'a',
  kAppends = 'e',
  kEmptyDict = '}',
  kSetItem = 's',
  kSetItems = 'u',
  kNone = 'N',
  kNewTrue = 0x88,
  kNewFalse = 0x89,
  kBinInt = 'J',
  kBinInt1 = 'K',
  kBinInt2 = 'M',
  kLong1 = 0x8a,
  kBinFloat = 'G',
  kShortBinUnicode = 0x8c,
  kBinUnicode = 'X',
  kBinUnicode8 = 0x8d,
  kGlobal = 'c',
  kStackGlobal = 0x93,
  kReduce = 'R',
  kBuild = 'b',
  kBinPersId = 'Q',
  kBinPut = 'q',
  kLongBinPut = 'r',
  kMemoize = 0x94,
  kBinGet = 'h',
  kLongBinGet = 'j',
};

// Values lie in one list and name each other by their places in it: what contains itself needs no care.
using Place = uint32_t;

struct Value {
  enum class Kind { kNone, kBool, kInt, kFloat, kString, kTuple, kList, kDict, kGlobal, kStorage, kTensor };
  Kind kind = Kind::kNone;
  int64_t number = 0;        // kBool, kInt; of a kTensor: which
  std::string text;          // kString, kGlobal ("torch._utils _rebuild_tensor_v2"); kStorage: its entry
  std::vector<Place> items;  // kTuple, kList; kDict: keys and values in turn
  c10::ScalarType dtype = c10::ScalarType::Undefined;  // kStorage: Undefined where it has none
};

using Kind = Value::Kind;

struct NamedDtype {
  absl::string_view name;
  c10::ScalarType dtype;
};

constexpr NamedDtype kStorageTypes[] = {
    {"DoubleStorage", c10::ScalarType::Double},
    {"FloatStorage", c10::ScalarType::Float},
    {"HalfStorage", c10::ScalarType::Half},
    {"BFloat16Storage", c10::ScalarType::BFloat16},
    {"LongStorage", c10::ScalarType::Long},
    {"IntStorage", c10::ScalarType::Int},
    {"ShortStorage", c10::ScalarType::Short},
    {"CharStorage", c10::ScalarType::Char},
    {"ByteStorage", c10::ScalarType::Byte},
    {"BoolStorage", c10::ScalarType::Bool},
    {"ComplexDoubleStorage", c10::ScalarType::ComplexDouble},
    {"ComplexFloatStorage", c10::ScalarType::ComplexFloat},
};

struct NamedText {
  absl::string_view name;  // of Python
  absl::string_view c10;
};

constexpr NamedText kDtypes[] = {
    {"float64", "Double"},
    {"float32", "Float"},
    {"float16", "Half"},
    {"bfloat16", "BFloat16"},
    {"int64", "Long"},
    {"int32", "Int"},
    {"int16", "Short"},
    {"int8", "Char"},
    {"uint8", "Byte"},
    {"bool", "Bool"},
    {"complex128", "ComplexDouble"},
    {"complex64", "ComplexFloat"},
    {"complex32", "ComplexHalf"},
    {"uint16", "UInt16"},
    {"uint32", "UInt32"},
    {"uint64", "UInt64"},
    {"float8_e4m3fn", "Float8_e4m3fn"},
    {"float8_e5m2", "Float8_e5m2"},
    {"float8_e4m3fnuz", "Float8_e4m3fnuz"},
    {"float8_e5m2fnuz", "Float8_e5m2fnuz"},
    {"float8_e8m0fnu", "Float8_e8m0fnu"},
};

class Reader {
 public:
  Reader(const Archive& saved, MemoryBudget* budget)
      : saved_(saved),
        budget_(budget),
        where_(saved.Place(kPickle)),
        bytes_(saved.Read(kPickle)),
        at_(bytes_.data),
        end_(bytes_.data + bytes_.size) {}

  std::vector<std::pair<std::string, at::Tensor>> Read() {
    if (Byte() != kProto) Fail("is no pickle of protocol 2 or newer");
    const uint8_t protocol = Byte();
    if (protocol < 2 || protocol > 5) Fail(absl::StrCat("has protocol ", int{protocol}, "; 2 to 5 are read"));
    bool running = true;
    while (running) running = Step();
    if (stack_.size() != 1 || !marks_.empty()) Fail("leaves something unused");
    return Tensors(values_[stack_[0]]);
  }

 private:
  [[noreturn]] void Fail(const std::string& what) const {
    throw InvalidArgument(absl::StrCat(where_, ": byte ", at_ - bytes_.data, ": ", what));
  }
  [[noreturn]] void Refuse(const std::string& name) const {
    throw Unimplemented(absl::StrCat(where_, ": pickles ", Quoted(name),
                                     ", and only plain tensors are read: pickled classes are never run; export the "
                                     "model without it"));
  }

  // ------------------------------------------------------------------------------------------------------- bytes

  const char* Take(uint64_t count) {
    if (count > static_cast<uint64_t>(end_ - at_)) Fail("the pickle is truncated");
    const char* begin = at_;
    at_ += count;
    return begin;
  }
  uint8_t Byte() { return static_cast<uint8_t>(*Take(1)); }
  uint64_t Little(int bytes) {
    const char* from = Take(static_cast<uint64_t>(bytes));
    uint64_t number = 0;
    for (int k = bytes; k-- > 0;) number = number << 8 | static_cast<uint8_t>(from[k]);
    return number;
  }
  std::string Line() {
    const void* found = std::memchr(at_, '\n', static_cast<size_t>(end_ - at_));
    if (found == nullptr) Fail("the pickle is truncated");
    std::string line(at_, static_cast<const char*>(found));
    at_ = static_cast<const char*>(found) + 1;
    return line;
  }

  // ------------------------------------------------------------------------------------------------------ values

  void Push(Place place) {
    budget_->TakeElement(stack_);
    stack_.push_back(place);
  }
  void Push(Value value) {
    budget_->TakeElement(values_);
    budget_->Take(value.text.size() + value.items.size() * sizeof(Place));
    values_.push_back(std::move(value));
    Push(static_cast<Place>(values_.size() - 1));
  }
  void Push(Kind kind, int64_t number = 0) {
    Value value;
    value.kind = kind;
    value.number = number;
    Push(std::move(value));
  }
  void PushText(Kind kind, std::string text) {
    Value value;
    value.kind = kind;
    value.text = std::move(text);
    Push(std::move(value));
  }
  Place Pop() {
    const size_t floor = marks_.empty() ? 0 : marks_.back();
    if (stack_.size() <= floor) Fail("takes a value where there is none");
    const Place place = stack_.back();
    stack_.pop_back();
    return place;
  }
  Place Top() {
    const Place place = Pop();
    stack_.push_back(place);
    return place;
  }
  std::vector<Place> PopMany(size_t count) {
    std::vector<Place> items(count);
    while (count-- > 0) items[count] = Pop();
    return items;
  }
  std::vector<Place> PopToMark() {
    if (marks_.empty()) Fail("has no mark");
    std::vector<Place> items = PopMany(stack_.size() - marks_.back());
    marks_.pop_back();
    return items;
  }
  void PushTuple(std::vector<Place> items) {
    Value value;
    value.kind = Kind::kTuple;
    value.items = std::move(items);
    Push(std::move(value));
  }
  void Extend(Kind kind, const std::vector<Place>& items) {
    Value& target = values_[Top()];
    if (target.kind != kind) Fail("adds to what is no list or dict");
    if (kind == Kind::kDict && items.size() % 2 != 0) Fail("a dict has a key without a value");
    for (const Place item : items) {
      budget_->TakeElement(target.items);
      target.items.push_back(item);
    }
  }
  void Remember(uint32_t index, Place place) {
    budget_->Take(kMapNodeCost);
    memo_[index] = place;
  }
  void Recall(uint32_t index) {
    const auto found = memo_.find(index);
    if (found == memo_.end()) Fail("asks for a value that was not remembered");
    Push(found->second);
  }

  // ------------------------------------------------------------------------------------------------ instructions

  // False at the end.
  bool Step() {
    const uint8_t opcode = Byte();
    switch (opcode) {
      case kStop:
        return false;
      case kFrame:
        Take(8);
        break;
      case kMark:
        budget_->TakeElement(marks_);
        marks_.push_back(stack_.size());
        break;
      case kEmptyTuple:
        PushTuple({});
        break;
      case kTuple:
        PushTuple(PopToMark());
        break;
      case kTuple1:
      case kTuple2:
      case kTuple3:
        PushTuple(PopMany(static_cast<size_t>(opcode - kTuple1) + 1));
        break;
      case kEmptyList:
        Push(Kind::kList);
        break;
      case kAppend:
        Extend(Kind::kList, PopMany(1));
        break;
      case kAppends:
        Extend(Kind::kList, PopToMark());
        break;
      case kEmptyDict:
        Push(Kind::kDict);
        break;
      case kSetItem:
        Extend(Kind::kDict, PopMany(2));
        break;
      case kSetItems:
        Extend(Kind::kDict, PopToMark());
        break;
      case kNone:
        Push(Kind::kNone);
        break;
      case kNewTrue:
      case kNewFalse:
        Push(Kind::kBool, opcode == kNewTrue ? 1 : 0);
        break;
      case kBinInt:
        Push(Kind::kInt, static_cast<int32_t>(static_cast<uint32_t>(Little(4))));
        break;
      case kBinInt1:
        Push(Kind::kInt, static_cast<int64_t>(Little(1)));
        break;
      case kBinInt2:
        Push(Kind::kInt, static_cast<int64_t>(Little(2)));
        break;
      case kLong1:
        Push(Kind::kInt, Long());
        break;
      case kBinFloat:
        Take(8);  // of metadata, which nobody asks for
        Push(Kind::kFloat);
        break;
      case kShortBinUnicode:
        PushString(Little(1));
        break;
      case kBinUnicode:
        PushString(Little(4));
        break;
      case kBinUnicode8:
        PushString(Little(8));
        break;
      case kGlobal: {
        const std::string module = Line();
        PushText(Kind::kGlobal, absl::StrCat(module, " ", Line()));
        break;
      }
      case kStackGlobal: {
        const std::vector<Place> names = PopMany(2);
        if (values_[names[0]].kind != Kind::kString || values_[names[1]].kind != Kind::kString) {
          Fail("names no function");
        }
        PushText(Kind::kGlobal, absl::StrCat(values_[names[0]].text, " ", values_[names[1]].text));
        break;
      }
      case kReduce: {
        const std::vector<Place> call = PopMany(2);
        Call(call[0], call[1]);
        break;
      }
      case kBuild:
        // The state is what torch.save adds to the dict of a module's state: versions of its classes.
        Pop();
        if (values_[Top()].kind != Kind::kDict) Fail("adds attributes to what is no dict");
        break;
      case kBinPersId:
        PushStorage(Pop());
        break;
      case kBinPut:
        Remember(static_cast<uint32_t>(Little(1)), Top());
        break;
      case kLongBinPut:
        Remember(static_cast<uint32_t>(Little(4)), Top());
        break;
      case kMemoize:
        Remember(static_cast<uint32_t>(memo_.size()), Top());
        break;
      case kBinGet:
        Recall(static_cast<uint32_t>(Little(1)));
        break;
      case kLongBinGet:
        Recall(static_cast<uint32_t>(Little(4)));
        break;
      default:
        Fail(absl::StrCat("has the instruction ", int{opcode}, ", which torch.save does not write"));
    }
    return true;
  }

  int64_t Long() {
    const int bytes = static_cast<int>(Little(1));
    if (bytes > 8) Fail("an integer does not fit 64 bits");
    if (bytes == 0) return 0;
    uint64_t number = Little(bytes);
    // The highest bit is the sign.
    if (bytes < 8 && (number >> (8 * bytes - 1)) != 0) number |= ~uint64_t{0} << (8 * bytes);
    return static_cast<int64_t>(number);
  }

  void PushString(uint64_t size) {
    const char* text = Take(size);
    PushText(Kind::kString, std::string(text, size));
  }

  // -------------------------------------------------------------------------------------------- what may be called

  const Value& Argument(const Value& arguments, size_t index, Kind kind) const {
    if (index >= arguments.items.size() || values_[arguments.items[index]].kind != kind) {
      Fail(absl::StrCat("argument ", index, " of a call is missing, or of another type"));
    }
    return values_[arguments.items[index]];
  }

  std::vector<int64_t> Integers(const Value& tuple) const {
    std::vector<int64_t> numbers;
    for (const Place item : tuple.items) {
      if (values_[item].kind != Kind::kInt) Fail("a size or stride is no integer");
      numbers.push_back(values_[item].number);
    }
    return numbers;
  }

  void Call(Place function, Place argument_tuple) {
    if (values_[function].kind != Kind::kGlobal || values_[argument_tuple].kind != Kind::kTuple) {
      Fail("calls what is no function");
    }
    const std::string name = values_[function].text;
    const Value& arguments = values_[argument_tuple];
    if (name == "collections OrderedDict") {
      if (!arguments.items.empty()) Fail("makes a dict in a way that torch.save does not");
      return Push(Kind::kDict);
    }
    if (name == "torch Size") {
      const std::vector<Place> items = Argument(arguments, 0, Kind::kTuple).items;
      return PushTuple(items);
    }
    if (name == "torch._utils _rebuild_tensor" || name == "torch._utils _rebuild_tensor_v2") {
      return PushTensor(arguments, Argument(arguments, 0, Kind::kStorage).dtype, 6);
    }
    if (name == "torch._utils _rebuild_tensor_v3") {
      return PushTensor(arguments, Dtype(Argument(arguments, 6, Kind::kGlobal).text), 7);
    }
    // With state: attributes that somebody's code gave to the parameter, which a graph cannot ask for.
    if (name == "torch._utils _rebuild_parameter" || name == "torch._utils _rebuild_parameter_with_state") {
      return Push(Kind::kTensor, Argument(arguments, 0, Kind::kTensor).number);
    }
    if (name == "torch._tensor _rebuild_from_type_v2") return CallOfType(arguments);
    Refuse(name);
  }

  // (FUNCTION, TYPE, ITS ARGUMENTS, STATE), of a tensor to which somebody's code gave attributes: they are the state,
  // and no class of its own.
  void CallOfType(const Value& arguments) {
    const std::string& function = Argument(arguments, 0, Kind::kGlobal).text;
    const std::string& type = Argument(arguments, 1, Kind::kGlobal).text;
    Argument(arguments, 2, Kind::kTuple);
    if (type != "torch Tensor" && type != "torch.nn.parameter Parameter") Refuse(type);
    if (!absl::StartsWith(function, "torch._utils _rebuild_")) Refuse(function);
    Call(arguments.items[0], arguments.items[2]);
  }

  c10::ScalarType Dtype(const std::string& global) const {
    for (const NamedText& known : kDtypes) {
      if (global == absl::StrCat("torch ", known.name)) return DtypeCalled(known.c10, known.name, where_);
    }
    Refuse(global);
  }

  // ("storage", TYPE, KEY, LOCATION, NUMBER OF ELEMENTS)
  void PushStorage(Place place) {
    const Value& id = values_[place];
    if (id.kind != Kind::kTuple || Argument(id, 0, Kind::kString).text != "storage") Fail("refers to no storage");
    const std::string& type = Argument(id, 1, Kind::kGlobal).text;
    Value storage;
    storage.kind = Kind::kStorage;
    storage.text = absl::StrCat("data/", Argument(id, 2, Kind::kString).text);
    bool known = type == "torch.storage UntypedStorage" || type == "torch UntypedStorage";
    for (const NamedDtype& candidate : kStorageTypes) {
      if (type != absl::StrCat("torch ", candidate.name)) continue;
      storage.dtype = candidate.dtype;
      known = true;
    }
    if (!known) Refuse(type);
    if (storages_.count(storage.text) == 0) {
      budget_->Take(kTensorCost + 2 * storage.text.size());
      const size_t alignment =
          storage.dtype == c10::ScalarType::Undefined ? kLargestElement : c10::elementSize(storage.dtype);
      storages_[storage.text] = MakeStorage(saved_.ReadWithin(storage.text), alignment, budget_);
    }
    Push(std::move(storage));
  }

  // (storage, offset, sizes, strides, requires_grad, hooks, ...); `metadata`: the argument that says what else there
  // is, such as that the tensor is to be conjugated.
  void PushTensor(const Value& arguments, c10::ScalarType dtype, size_t metadata) {
    if (dtype == c10::ScalarType::Undefined) Fail("a tensor has no dtype");
    Strided strided;
    strided.dtype = dtype;
    strided.offset = Argument(arguments, 1, Kind::kInt).number;
    strided.sizes = Integers(Argument(arguments, 2, Kind::kTuple));
    strided.strides = Integers(Argument(arguments, 3, Kind::kTuple));
    if (metadata < arguments.items.size()) {
      const Value& more = values_[arguments.items[metadata]];
      const bool says = more.kind != Kind::kNone && !(more.kind == Kind::kDict && more.items.empty());
      if (says) Refuse("a tensor that is conjugated or negated when it is read");
    }
    budget_->Take(kTensorCost);
    SharedStorage& storage = storages_.at(Argument(arguments, 0, Kind::kStorage).text);
    tensors_.push_back(MakeTensor(storage, strided, where_));
    Push(Kind::kTensor, static_cast<int64_t>(tensors_.size() - 1));
  }

  std::vector<std::pair<std::string, at::Tensor>> Tensors(const Value& dict) const {
    if (dict.kind != Kind::kDict) Fail("holds no dict of tensors");
    std::vector<std::pair<std::string, at::Tensor>> tensors;
    for (size_t k = 0; k + 1 < dict.items.size(); k += 2) {
      const Value& key = values_[dict.items[k]];
      const Value& value = values_[dict.items[k + 1]];
      if (key.kind != Kind::kString) Fail("a tensor has no name");
      if (value.kind != Kind::kTensor) {
        Refuse(absl::StrCat(key.text, ", which is no tensor", value.kind == Kind::kGlobal ? " but " + value.text : ""));
      }
      budget_->Take(2 * key.text.size() + sizeof(tensors[0]));
      tensors.emplace_back(key.text, tensors_[static_cast<size_t>(value.number)]);
    }
    return tensors;
  }

  const Archive& saved_;
  MemoryBudget* budget_;
  std::string where_;
  Bytes bytes_;
  const char* at_;
  const char* end_;
  std::vector<Value> values_;
  std::vector<Place> stack_;
  std::vector<size_t> marks_;  // sizes of the stack
  std::unordered_map<uint32_t, Place> memo_;
  std::map<std::string, SharedStorage> storages_;
  std::vector<at::Tensor> tensors_;
};

}  // namespace

std::vector<std::pair<std::string, at::Tensor>> ReadPickledTensors(const Archive& saved, MemoryBudget* budget) {
  saved.RequireLittleEndian();
  return Reader(saved, budget).Read();
}

}  // namespace addend::exported
