#include "core/recording/learn_sizes.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/error.h"
#include "core/program/compare.h"
#include "core/program/random_state.h"
#include "core/program/recorder.h"
#include "core/program/replay.h"
#include "core/recording/align.h"

namespace addend {
namespace {

using Inputs = std::vector<c10::IValue>;
using Sizes = std::vector<std::vector<int64_t>>;  // by tensor

Sizes SizesIn(const Inputs& inputs) {
  Sizes sizes;
  for (const at::Tensor& tensor : TensorsIn(inputs)) sizes.push_back(tensor.sizes().vec());
  return sizes;
}

// The tensors of the inputs replaced one by one, in order.
template <typename Replace>
Inputs WithTensors(const Inputs& inputs, Replace replace) {
  Inputs replaced;
  size_t count = 0;
  for (const c10::IValue& input : inputs) {
    std::vector<at::Tensor> tensors;
    const Structure structure = TakeApart(input, "an input", [&](const at::Tensor& tensor) {
      tensors.push_back(replace(tensor, count++));
      return static_cast<int>(tensors.size()) - 1;
    });
    replaced.push_back(PutTogether(structure, [&](int k) { return tensors[k]; }));
  }
  return replaced;
}

Inputs Copies(const Inputs& inputs) {
  return WithTensors(inputs, [](const at::Tensor& tensor, size_t) { return tensor.clone(); });
}

// More or fewer elements of a dimension; more by repetition.
at::Tensor OfSize(const at::Tensor& tensor, int64_t dim, int64_t size) {
  const int64_t own = tensor.size(dim);
  if (size <= own) return tensor.narrow(dim, 0, size);
  return tensor.index_select(dim,
                             at::arange(size, tensor.options().dtype(at::kLong).requires_grad(false)).remainder(own));
}

// The greatest common divisor of all differences of sizes; 1 if there are none.
int64_t StepOf(const std::vector<int64_t>& sizes) {
  int64_t step = 0;
  for (const int64_t size : sizes) step = std::gcd(step, size - sizes[0]);
  return std::max<int64_t>(step, 1);
}

class Learner {
 public:
  // The first `given` examples are the caller's. `tried`: sizes with which earlier learners failed, which outlive this.
  Learner(const RecordExample& record, std::vector<Inputs> examples, size_t given, const std::set<Sizes>& tried)
      : record_(record), examples_(std::move(examples)), num_given_(given), tried_(tried) {}

  // The given examples, the derived ones, and third sizes.
  const std::vector<Inputs>& examples() const { return examples_; }

  // Whether it failed because a number follows no size as these examples tell it.
  bool unfit() const { return unfit_; }

  // The program holds between the sizes of the examples.
  Recording Learn() {
    for (size_t e = 0; e < examples_.size(); ++e) Add(examples_[e], e);
    for (const RecordedInput& input : runs_[0].program->inputs) {
      ForEachNumber(input.structure, [&](int value) { values_.push_back(value); });
    }
    FindFree();
    for (size_t f = 0; f < free_.size(); ++f) AddThirdSize(f);
    for (FreeDimension& dimension : free_) dimension.step = StepOf(SizesOf(TensorOf(dimension.input), dimension.dim));
    Align();
    const RecordedProgram& base = *runs_[0].program;
    for (size_t r = 1; r < runs_.size(); ++r) RequireSame(*runs_[r].program);
    auto program = std::make_shared<RecordedProgram>(base);
    program->free = free_;
    for (size_t s = 0; s < base.storages.size(); ++s) FitConstant(static_cast<int>(s), program->sizes);
    for (size_t c = 0; c < base.calls.size(); ++c) Fit(static_cast<int>(c), program->sizes);
    Recording recording = runs_[0];
    recording.program = program;
    Repeat();
    Verify(recording);
    LeaveOutOthers(recording, program->free);
    return recording;
  }

 private:
  void Add(const Inputs& inputs, size_t example) {
    random_.Restore();
    runs_.push_back(record_(Copies(inputs), example));
    for (const at::Generator& generator : GivenGenerators(*runs_.back().program)) given_.Add(generator);
    sizes_.push_back(SizesIn(inputs));
  }

  [[noreturn]] void Refuse(int call, const std::string& what) const {
    const RecordedProgram& base = *runs_[0].program;
    const std::string name = call < 0 ? "" : absl::StrCat(FullName(base.calls[call].op.schema()), ": ");
    throw Error(absl::StatusCode::kFailedPrecondition, absl::StrCat("other sizes cannot be learned: ", name, what),
                call < 0 ? Position() : PositionOf(base, call));
  }

  // Sizes of one dimension of the t-th tensor, by run.
  std::vector<int64_t> SizesOf(size_t t, int dim) const {
    std::vector<int64_t> sizes;
    for (const auto& run : sizes_) sizes.push_back(run[t][dim]);
    return sizes;
  }

  size_t TensorOf(int value) const {
    return static_cast<size_t>(std::find(values_.begin(), values_.end(), value) - values_.begin());
  }

  void FindFree() {
    for (size_t r = 1; r < runs_.size(); ++r) {
      bool same = sizes_[r].size() == sizes_[0].size();
      for (size_t t = 0; same && t < sizes_[0].size(); ++t) same = sizes_[r][t].size() == sizes_[0][t].size();
      if (!same) throw InvalidArgument("examples have to differ in sizes only, not in how many tensors or dimensions");
    }
    for (size_t t = 0; t < values_.size(); ++t) {
      for (int d = 0; d < static_cast<int>(sizes_[0][t].size()); ++d) {
        const std::vector<int64_t> sizes = SizesOf(t, d);
        if (std::set<int64_t>(sizes.begin(), sizes.end()).size() == 1) continue;
        FreeDimension dimension;
        dimension.input = values_[t];
        dimension.dim = d;
        dimension.least = *std::min_element(sizes.begin(), sizes.end());
        dimension.most = *std::max_element(sizes.begin(), sizes.end());
        for (size_t f = 0; f < free_.size() && dimension.like < 0; ++f) {
          if (SizesOf(TensorOf(free_[f].input), free_[f].dim) == sizes) dimension.like = static_cast<int>(f);
        }
        free_.push_back(dimension);
      }
    }
    if (free_.empty()) throw InvalidArgument("the examples all have the same sizes");
  }

  // Two points are on a line whatever they are. A third size is larger by one, or smaller where the model takes none
  // that is larger: 1 is tried last, at which many operators do something else.
  void AddThirdSize(size_t f) {
    if (free_[f].like >= 0) return;
    const std::vector<int64_t> sizes = SizesOf(TensorOf(free_[f].input), free_[f].dim);
    const std::set<int64_t> seen(sizes.begin(), sizes.end());
    if (seen.size() > 2) return;
    const size_t largest = std::max_element(sizes.begin(), sizes.end()) - sizes.begin();
    std::vector<int64_t> thirds = {sizes[largest] + 1};
    for (int64_t size = sizes[largest] - 1; size > 0 && thirds.size() < 2; --size) {
      if (seen.count(size) == 0) thirds.push_back(size);
    }
    std::string refused;
    for (const int64_t third : thirds) {
      Inputs inputs = WithTensors(examples_[largest], [&](const at::Tensor& tensor, size_t t) {
        at::Tensor other = tensor;
        for (size_t g = 0; g < free_.size(); ++g) {
          const bool follows = g == f || free_[g].like == static_cast<int>(f);
          if (follows && values_[t] == free_[g].input) other = OfSize(other, free_[g].dim, third);
        }
        return other.clone();
      });
      try {
        Add(inputs, largest);
        examples_.push_back(std::move(inputs));
        for (size_t g = 0; g < free_.size(); ++g) {
          if (g != f && free_[g].like != static_cast<int>(f)) continue;
          free_[g].least = std::min(free_[g].least, third);
          free_[g].most = std::max(free_[g].most, third);
        }
        return;
      } catch (const Error& e) {
        refused = absl::StrCat("the model refuses a third, ", third, "; give a third example (", e.what(), ")");
      }
    }
    throw FailedPrecondition(absl::StrCat(DescribeDimension(*runs_[0].program, free_[f].input, free_[f].dim),
                                          " comes in two sizes only, and ", refused));
  }

  // Recordings at other sizes name values and calls otherwise, although nothing else is done.
  void Align() {
    std::vector<RecordedProgram*> programs;
    for (Recording& run : runs_) {
      auto own = std::make_shared<RecordedProgram>(*run.program);
      programs.push_back(own.get());
      run.program = std::move(own);
    }
    addend::Align(programs);
  }

  void RequireSame(const RecordedProgram& other) const {
    const RecordedProgram& base = *runs_[0].program;
    if (const auto difference = FirstDifference(base, other, /*sizes=*/false)) {
      Refuse(difference->call, difference->text);
    }
    for (size_t c = 0; c < base.calls.size(); ++c) {
      if ((base.calls[c].guard < 0) == (other.calls[c].guard < 0)) continue;
      Refuse(static_cast<int>(c), "it gives the model a number that depends on the input at some sizes only");
    }
    for (size_t g = 0; g < base.guards.size(); ++g) {
      const RecordedGuard& guard = base.guards[g];
      if (SamePlain(guard.value, other.guards[g].value)) continue;
      if (guard.kind != GuardKind::kProperty) {
        Refuse(guard.call, "what it gives the model depends on the elements of the input");
      }
      // Numbers are learned where they became arguments.
      const bool size = guard.value.isInt() || guard.value.isIntList() || guard.value.isDouble();
      if (!size) Refuse(guard.call, "what it gives the model depends on the sizes of the input, and is no number");
    }
    for (size_t v = 0; v < base.values.size(); ++v) {
      const RecordedValue& value = base.values[v];
      if (v >= other.values.size() || value.kind != other.values[v].kind) {
        Refuse(-1, absl::StrCat("a part of memory that no operator gave is read at some sizes only, in place of ",
                                value.name));
      }
      if (value.kind != ValueKind::kPart) continue;
      const RecordedValue& like = other.values[v];
      const int owner = base.storages[value.storage].value;
      const bool same = value.geometry == like.geometry && owner == other.storages[like.storage].value;
      if (same) continue;
      Refuse(FirstReader(static_cast<int>(v)),
             absl::StrCat("it reads memory of ", base.values[owner].name, " as ", DescribeValue(value),
                          ", in a way that no operator gave and that depends on the sizes of the input"));
    }
    for (size_t s = 0; s < base.storages.size(); ++s) {
      const RecordedStorage& storage = base.storages[s];
      if (storage.kind == ValueKind::kResult) continue;
      const int like = StorageLike(base, static_cast<int>(s), other);
      if (like >= 0 && storage.writers == other.storages[like].writers) continue;
      const int call = storage.writers.empty() ? -1 : storage.writers[0];
      Refuse(call, absl::StrCat("at some sizes only is ", base.values[storage.value].name,
                                " written, through a view that is a copy at others"));
    }
  }

  int FirstReader(int value) const {
    const RecordedProgram& base = *runs_[0].program;
    for (size_t c = 0; c < base.calls.size(); ++c) {
      for (const TensorUse& use : base.calls[c].uses) {
        if (use.value == value) return static_cast<int>(c);
      }
    }
    return -1;
  }

  // Elements of a constant that are sizes: what a number becomes where an operator takes it as a tensor.
  void FitConstant(int s, std::vector<SizeRelation>& relations) const {
    const RecordedProgram& base = *runs_[0].program;
    const RecordedStorage& storage = base.storages[s];
    if (storage.kind != ValueKind::kConstant || !storage.initial.defined() || storage.initial.is_meta()) return;
    const std::string name = absl::StrCat("the constant ", base.values[storage.value].name);
    std::vector<at::Tensor> constants;
    bool same = true;
    bool fits = true;
    for (const Recording& run : runs_) {
      const at::Tensor& constant =
          constants.emplace_back(run.program->storages[StorageLike(base, s, *run.program)].initial);
      const bool alike = constant.defined() && constant.scalar_type() == storage.initial.scalar_type();
      if (alike && constant.sizes() != storage.initial.sizes()) {
        Refuse(FirstReader(storage.value),
               absl::StrCat(name, " has ", storage.initial.numel(), " elements in one example and ", constant.numel(),
                            " in another; what an operator such as arange() makes can follow sizes"));
      }
      same &= alike && constant.equal(storage.initial);
      fits &= alike && constant.scalar_type() != at::kBool && !constant.is_complex() &&
              constant.to(at::kLong).to(constant.scalar_type()).equal(constant);
    }
    if (same) return;
    if (!fits) Refuse(FirstReader(storage.value), absl::StrCat(name, " depends on the input"));
    for (int64_t e = 0; e < storage.initial.numel(); ++e) {
      std::vector<int64_t> numbers;
      for (const at::Tensor& constant : constants) numbers.push_back(constant.select(0, e).item().toLong());
      SizeRelation relation;
      relation.element = static_cast<int>(e);
      relation.storage = s;
      FitNumber(relation, name, numbers, relations);
    }
  }

  void Fit(int call, std::vector<SizeRelation>& relations) const {
    const RecordedCall& recorded = runs_[0].program->calls[call];
    for (size_t a = 0; a < recorded.arguments.size(); ++a) {
      const c10::IValue& argument = recorded.arguments[a];
      // How many tensors of a list are there is no size.
      if (argument.isInt()) {
        std::vector<int64_t> numbers;
        for (const Recording& run : runs_) numbers.push_back(run.program->calls[call].arguments[a].toInt());
        FitArgument(call, a, -1, numbers, relations);
      } else if (argument.isIntList()) {
        const size_t length = argument.toIntList().size();
        for (const Recording& run : runs_) {
          if (run.program->calls[call].arguments[a].toIntList().size() != length) {
            Refuse(call, absl::StrCat("the argument ", Name(recorded, a), " has not always as many numbers"));
          }
        }
        for (size_t e = 0; e < length; ++e) {
          std::vector<int64_t> numbers;
          for (const Recording& run : runs_) {
            numbers.push_back(run.program->calls[call].arguments[a].toIntList().get(e));
          }
          FitArgument(call, a, static_cast<int>(e), numbers, relations);
        }
      }
    }
  }

  static const std::string& Name(const RecordedCall& call, size_t argument) {
    return call.op.schema().arguments()[argument].name();
  }

  void FitArgument(int call, size_t argument, int element, const std::vector<int64_t>& numbers,
                   std::vector<SizeRelation>& relations) const {
    SizeRelation relation;
    relation.call = call;
    relation.argument = static_cast<int16_t>(argument);
    relation.element = element;
    FitNumber(relation, absl::StrCat("the argument ", Name(runs_[0].program->calls[call], argument)), numbers,
              relations);
  }

  static std::optional<SizeRelation> FitLine(SizeRelation relation, const std::vector<int64_t>& sizes,
                                             const std::vector<int64_t>& numbers) {
    size_t other = 0;
    while (other < sizes.size() && sizes[other] == sizes[0]) ++other;
    if (other == sizes.size()) return std::nullopt;
    const int64_t step = sizes[other] - sizes[0];
    if ((numbers[other] - numbers[0]) % step != 0) return std::nullopt;
    relation.factor = (numbers[other] - numbers[0]) / step;
    relation.offset = numbers[0] - relation.factor * sizes[0];
    for (size_t r = 0; r < numbers.size(); ++r) {
      if (relation.factor * sizes[r] + relation.offset != numbers[r]) return std::nullopt;
    }
    return relation;
  }

  // Sizes that are divided and rounded down, where twice as many as the divisor says were tried one after the other.
  static void FitQuotients(SizeRelation relation, const std::vector<int64_t>& sizes,
                           const std::vector<int64_t>& numbers, std::vector<SizeRelation>& fits) {
    const std::set<int64_t> distinct(sizes.begin(), sizes.end());
    int64_t run = 1;  // the most sizes one after the other
    int64_t current = 1;
    for (const int64_t size : distinct) {
      current = distinct.count(size - 1) != 0 ? current + 1 : 1;
      run = std::max(run, current);
    }
    for (relation.divisor = 2; 2 * relation.divisor <= run; ++relation.divisor) {
      for (relation.shift = 0; relation.shift < relation.divisor; ++relation.shift) {
        std::vector<int64_t> quotients;
        for (const int64_t size : sizes) quotients.push_back((size + relation.shift) / relation.divisor);
        if (const auto line = FitLine(relation, quotients, numbers)) fits.push_back(*line);
      }
    }
  }

  // `relation`: the place of the number; `whose`: the same in words.
  void FitNumber(SizeRelation relation, const std::string& whose, const std::vector<int64_t>& numbers,
                 std::vector<SizeRelation>& relations) const {
    if (std::set<int64_t>(numbers.begin(), numbers.end()).size() == 1) return;
    std::vector<SizeRelation> fits;
    const auto fit = [&](const std::vector<int64_t>& sizes) {
      if (const auto line = FitLine(relation, sizes, numbers)) {
        fits.push_back(*line);
      } else {
        FitQuotients(relation, sizes, numbers, fits);
      }
    };
    for (const FreeDimension& dimension : free_) {
      if (dimension.like >= 0) continue;
      relation.input = dimension.input;
      relation.dim = dimension.dim;
      fit(SizesOf(TensorOf(dimension.input), dimension.dim));
    }
    for (size_t f = 0; f < free_.size() && fits.empty(); ++f) {
      for (size_t g = 0; g < f && free_[f].like < 0; ++g) {
        if (free_[g].like >= 0) continue;
        relation.input = free_[g].input;
        relation.dim = free_[g].dim;
        relation.other_input = free_[f].input;
        relation.other_dim = free_[f].dim;
        std::vector<int64_t> products = SizesOf(TensorOf(relation.input), relation.dim);
        const std::vector<int64_t> others = SizesOf(TensorOf(relation.other_input), relation.other_dim);
        for (size_t r = 0; r < products.size(); ++r) products[r] *= others[r];
        fit(products);
      }
    }
    const int call = relation.call;
    const std::string what = absl::StrCat(whose, " is ", absl::StrJoin(numbers, ", "), " in the examples");
    unfit_ = fits.empty();
    if (fits.empty()) Refuse(call, absl::StrCat(what, ", which follows no dimension of an input linearly"));
    if (fits.size() > 1) {
      Refuse(call, absl::StrCat(what, ", which follows several dimensions; give examples that tell them apart"));
    }
    relations.push_back(fits[0]);
  }

  // A number that differs between two runs of one size is no function of sizes, however well it rises with the
  // examples: a model that counts its calls has such numbers.
  void Repeat() {
    random_.Restore();
    RecordedProgram again = *record_(Copies(examples_[0]), 0).program;
    RecordedProgram first = *runs_[0].program;
    addend::Align({&first, &again});
    // Both runs have one size, but are aligned with runs of others: shapes of results are compared as between sizes.
    if (const auto difference = FirstDifference(first, again, /*sizes=*/false)) {
      RefuseCounter(difference->call, difference->text);
    }
    for (size_t c = 0; c < first.calls.size(); ++c) {
      for (size_t a = 0; a < first.calls[c].arguments.size(); ++a) {
        if (SamePlain(first.calls[c].arguments[a], again.calls[c].arguments[a])) continue;
        RefuseCounter(static_cast<int>(c), absl::StrCat("the argument ", Name(first.calls[c], a), " is another"));
      }
    }
    for (size_t s = 0; s < first.storages.size(); ++s) {
      const RecordedStorage& storage = first.storages[s];
      if (storage.kind != ValueKind::kConstant || !storage.initial.defined() || storage.initial.is_meta()) continue;
      const int like = StorageLike(first, static_cast<int>(s), again);
      const at::Tensor found = like < 0 ? at::Tensor() : again.storages[like].initial;
      const bool same = found.defined() && found.scalar_type() == storage.initial.scalar_type() &&
                        found.sizes() == storage.initial.sizes() &&
                        found.allclose(storage.initial, 0, 0, /*equal_nan=*/true);
      if (same) continue;
      RefuseCounter(FirstReader(storage.value),
                    absl::StrCat("the constant ", first.values[storage.value].name, " is another"));
    }
  }

  [[noreturn]] void RefuseCounter(int call, const std::string& what) const {
    Refuse(call,
           absl::StrCat(what, " when the model runs for the first example once more, so that it follows no size; ",
                        "a model that counts its calls is like that"));
  }

  void Verify(const Recording& recording) {
    const Replay replay(recording.program);
    for (size_t r = 0; r < runs_.size(); ++r) {
      random_.Restore();
      given_.Restore();
      const std::vector<at::Tensor> found = TensorsIn({replay.Run(Copies(examples_[r])).output});
      if (SameTensors(found, TensorsIn({runs_[r].output}))) continue;
      Refuse(-1, absl::StrCat("example ", r, " gives something else when it is replayed"));
    }
  }

  static bool SameTensors(const std::vector<at::Tensor>& found, const std::vector<at::Tensor>& expected) {
    const auto same = [](const at::Tensor& a, const at::Tensor& b) {
      return a.sizes() == b.sizes() && a.scalar_type() == b.scalar_type() &&
             (a.is_meta() || a.allclose(b, 0, 0, /*equal_nan=*/true));
    };
    return std::equal(found.begin(), found.end(), expected.begin(), expected.end(), same);
  }

  // The program ends before sizes at which the model was seen to do something else.
  void LeaveOutOthers(const Recording& recording, std::vector<FreeDimension>& free) {
    const Replay replay(recording.program);
    for (const Sizes& sizes : tried_) {
      if (std::find(sizes_.begin(), sizes_.end(), sizes) != sizes_.end() || !DoesOther(replay, sizes)) continue;
      for (size_t f = 0; f < free.size(); ++f) {
        const int64_t size = sizes[TensorOf(free[f].input)][free[f].dim];
        if (free[f].like >= 0 || size == sizes_[0][TensorOf(free[f].input)][free[f].dim]) continue;
        EndBefore(size, f, free);
        break;
      }
    }
  }

  // Whether a replay gives at these sizes what the model does not.
  bool DoesOther(const Replay& replay, const Sizes& sizes) {
    const Inputs inputs = WithTensors(examples_[0], [&](const at::Tensor& tensor, size_t t) {
      at::Tensor other = tensor;
      for (size_t d = 0; d < sizes[t].size(); ++d) other = OfSize(other, static_cast<int64_t>(d), sizes[t][d]);
      return other.clone();
    });
    random_.Restore();
    given_.Restore();
    std::vector<at::Tensor> found;
    try {
      found = TensorsIn({replay.Run(Copies(inputs)).output});
    } catch (const std::exception&) {
      return false;  // these sizes are refused as it is
    }
    random_.Restore();
    try {
      return !SameTensors(found, TensorsIn({record_(Copies(inputs), 0).output}));
    } catch (const Error& e) {
      if (e.code() == absl::StatusCode::kCancelled) throw;
      return true;
    }
  }

  // Keeps the sizes that were tried on the side of `size` where the first example has its own.
  void EndBefore(int64_t size, size_t f, std::vector<FreeDimension>& free) const {
    const std::vector<int64_t> own = SizesOf(TensorOf(free[f].input), free[f].dim);
    std::set<int64_t> kept;
    for (size_t r = 0; r < own.size(); ++r) {
      if (own[0] < size ? own[r] < size : own[r] > size) {
        kept.insert(own[r]);
      } else if (r < num_given_) {
        Refuse(-1, absl::StrCat("the model does something else where ",
                                DescribeDimension(*runs_[0].program, free[f].input, free[f].dim), " is ", size,
                                ", which is between the sizes of the examples; give examples on one side of it"));
      }
    }
    for (size_t g = 0; g < free.size(); ++g) {
      if (g != f && free[g].like != static_cast<int>(f)) continue;
      free[g].least = std::max(free[g].least, *kept.begin());
      free[g].most = std::min(free[g].most, *kept.rbegin());
    }
  }

  const RecordExample& record_;
  std::vector<Inputs> examples_;
  const size_t num_given_;
  const std::set<Sizes>& tried_;
  // Every run draws the same random numbers.
  RandomState random_{examples_.empty() ? std::vector<at::Tensor>() : TensorsIn(examples_[0])};
  GeneratorStates given_;  // of generators that calls were given, as every run found them
  std::vector<Recording> runs_;
  std::vector<Sizes> sizes_;  // by run
  std::vector<int> values_;   // by tensor
  std::vector<FreeDimension> free_;
  mutable bool unfit_ = false;
};

// Gives the parameters that a run wrote the elements that they had before: at sizes that nobody asked for, a model may
// write what it only reads otherwise. A recording has copies of what it saw written.
void TakeBackWrites(const Model& model, const RecordedProgram& program) {
  const c10::AutoGradMode no_grad(false);
  for (const auto& [name, tensor] : model.NamedTensors()) {
    for (const RecordedValue& value : program.values) {
      if (value.name != name || value.kind != ValueKind::kParameter) continue;
      const RecordedStorage& storage = program.storages[value.storage];
      if (storage.writers.empty() || !storage.initial.defined() || storage.initial.is_meta()) continue;
      at::Tensor before = at::empty({0}, storage.initial.options().dtype(value.dtype));
      before.set_(storage.initial.storage(), value.geometry.offset, value.geometry.sizes, value.geometry.strides);
      at::Tensor(tensor).copy_(before);
    }
  }
}

// Learns sizes from examples, and from others that it derives from the first; see Note [Learned sizes].
class Deriver {
 public:
  Deriver(const RecordExample& record, const std::vector<Inputs>& examples) : record_(record), examples_(examples) {
    for (const Inputs& example : examples) sizes_.push_back(SizesIn(example));
  }

  // The dimensions that may have other sizes are those that have them in the examples.
  Recording Extend() {
    const std::vector<Group> given = GivenGroups();
    if (const auto learned = Extended(given, /*between=*/true)) return *learned;
    // Quotients take more sizes; nothing else is learned by them.
    for (const int64_t neighbours : kNeighbours) {
      if (!unfit_) break;
      std::vector<Group> groups = given;
      for (Group& group : groups) AddNeighbours(group.most, neighbours, group.sizes);
      if (const auto learned = Learned(groups)) return *learned;
    }
    if (const auto learned = Extended(given, /*between=*/false)) return *learned;
    return Learner(record_, examples_, examples_.size(), tried_).Learn();
  }

  // The dimensions that may have other sizes are found out.
  Recording Derive() {
    FindGroups();
    return LearnGroups();
  }

 private:
  using Dimension = std::pair<size_t, int64_t>;  // of a tensor of the inputs

  // Dimensions that change together, and the sizes at which the model does the same.
  struct Group {
    std::vector<Dimension> dimensions;
    std::vector<int64_t> sizes;
    int64_t least = 0;  // of the examples
    int64_t most = 0;
    std::vector<int64_t> given = {};  // all of those
  };

  // Learns with smaller and larger sizes than the given ones. `between`: adds both neighbours of the largest one to
  // groups whose sizes leave the same remainder, since a model that pads to a multiple of a window does nothing at
  // multiples. Otherwise: only if there are such groups, without neighbours.
  std::optional<Recording> Extended(const std::vector<Group>& given, bool between) {
    for (const bool far : {true, false}) {
      for (const int64_t small : {1, 2, 0}) {  // 0: none
        std::vector<Group> groups = given;
        bool more = false;
        bool apart = false;
        for (Group& group : groups) {
          if (far) group.sizes.push_back(FarOf(group.most));
          if (small > 0 && small < group.least) group.sizes.push_back(small);
          more |= !group.sizes.empty();
          std::vector<int64_t> sizes = group.given;
          sizes.insert(sizes.end(), group.sizes.begin(), group.sizes.end());
          if (StepOf(sizes) == 1) continue;
          apart = true;
          if (between) group.sizes.insert(group.sizes.end(), {group.most + 1, group.most - 1});
        }
        if (between ? !more && !apart : !more || !apart) continue;
        if (auto learned = Learned(groups)) return learned;
      }
    }
    return std::nullopt;
  }

  // How far a program goes beyond what is given.
  static int64_t FarOf(int64_t size) { return std::max<int64_t>(2 * size, 9); }

  // Sizes one after the other, of which halves and quarters that are rounded take twice as many as they divide by.
  static constexpr int64_t kNeighbours[] = {3, 7};

  static void AddNeighbours(int64_t size, int64_t neighbours, std::vector<int64_t>& sizes) {
    for (int64_t k = 1; k <= neighbours; ++k) sizes.push_back(size + k);
    sizes.push_back(FarOf(size + neighbours));
  }

  std::vector<Group> GivenGroups() const {
    std::map<std::vector<int64_t>, Group> groups;  // by the sizes in all examples
    for (size_t t = 0; t < sizes_[0].size(); ++t) {
      for (size_t d = 0; d < sizes_[0][t].size(); ++d) {
        std::vector<int64_t> sizes;
        for (const auto& example : sizes_) {
          if (t < example.size() && d < example[t].size()) sizes.push_back(example[t][d]);
        }
        const auto [least, most] = std::minmax_element(sizes.begin(), sizes.end());
        if (*least == *most) continue;
        Group& group = groups[sizes];
        group.given = sizes;
        group.dimensions.emplace_back(t, d);
        group.least = *least;
        group.most = *most;
      }
    }
    std::vector<Group> found;
    for (auto& [sizes, group] : groups) found.push_back(std::move(group));
    return found;
  }

  // Dimensions of one size at one place, as batches are, alone where that fails; what is left, all of one size.
  void FindGroups() {
    std::map<std::pair<int64_t, int64_t>, std::vector<Dimension>> places;
    for (size_t t = 0; t < sizes_[0].size(); ++t) {
      for (size_t d = 0; d < sizes_[0][t].size(); ++d) {
        if (sizes_[0][t][d] > 0) places[{static_cast<int64_t>(d), sizes_[0][t][d]}].emplace_back(t, d);
      }
    }
    std::map<int64_t, std::vector<Dimension>> left;
    for (const auto& [place, dimensions] : places) {
      if (Try(dimensions)) continue;
      for (const Dimension& dimension : dimensions) {
        if (dimensions.size() == 1 || !Try({dimension})) left[place.second].push_back(dimension);
      }
    }
    for (const auto& [size, dimensions] : left) {
      if (dimensions.size() > 1) Try(dimensions);
    }
  }

  // Whether something is learned of dimensions that change together.
  bool Try(const std::vector<Dimension>& dimensions) {
    const int64_t own = sizes_[0][dimensions[0].first][dimensions[0].second];
    unfit_ = false;
    for (const int64_t small : {int64_t{1}, std::min<int64_t>(2, own)}) {
      if (small < own && Holds(dimensions, {own + 1, FarOf(own), small})) return true;
    }
    if (Holds(dimensions, {own + 1, own + 2, FarOf(own)})) return true;
    // Quotients take more sizes; nothing else is learned by them.
    for (const int64_t neighbours : kNeighbours) {
      for (int64_t small = 1; small <= std::min<int64_t>(2, own) && unfit_; ++small) {
        std::vector<int64_t> sizes;
        AddNeighbours(own, neighbours, sizes);
        if (small < own) sizes.push_back(small);
        if (Holds(dimensions, std::move(sizes))) return true;
      }
    }
    return Holds(dimensions, {own + 1, own + 2});
  }

  // Whether something is learned of dimensions from these sizes; keeps it.
  bool Holds(const std::vector<Dimension>& dimensions, std::vector<int64_t> sizes) {
    Group group{dimensions, std::move(sizes)};
    std::optional<Recording> learned = Learned({group});
    if (!learned) return false;
    groups_.push_back(std::move(group));
    of_one_ = groups_.size() == 1 ? std::move(learned) : std::nullopt;
    return true;
  }

  // Learns all groups, or else as many as can be learned together.
  Recording LearnGroups() {
    if (of_one_) return *of_one_;
    if (const auto all = Learned(groups_)) return *all;
    std::vector<Group> together;
    std::optional<Recording> learned;
    for (const Group& group : groups_) {
      together.push_back(group);
      if (auto more = Learned(together)) {
        learned = std::move(more);
      } else {
        together.pop_back();
      }
    }
    return learned ? *learned : record_(Copies(examples_[0]), 0);
  }

  // Learns from the examples and these groups; nothing if the model refuses a size, or does something else at one.
  std::optional<Recording> Learned(const std::vector<Group>& groups) {
    if (groups.empty()) return std::nullopt;
    std::vector<Inputs> examples = examples_;
    for (const Group& group : groups) {
      for (const int64_t size : group.sizes) examples.push_back(Derived({{&group, size}}));
    }
    std::vector<std::pair<const Group*, int64_t>> all;
    for (const Group& group : groups) {
      if (!group.sizes.empty()) all.emplace_back(&group, group.sizes[0]);
    }
    if (all.size() > 1) examples.push_back(Derived(all));
    const RecordExample record = [&](const Inputs& inputs, size_t example) {
      return record_(inputs, example < examples_.size() ? example : 0);
    };
    Learner learner(record, std::move(examples), examples_.size(), tried_);
    try {
      return learner.Learn();
    } catch (const Error& e) {
      if (e.code() == absl::StatusCode::kCancelled) throw;
      unfit_ = unfit_ || learner.unfit();
      for (size_t e = examples_.size(); e < learner.examples().size(); ++e) {
        tried_.insert(SizesIn(learner.examples()[e]));
      }
      return std::nullopt;
    }
  }

  Inputs Derived(const std::vector<std::pair<const Group*, int64_t>>& changes) const {
    return WithTensors(examples_[0], [&](const at::Tensor& tensor, size_t t) {
      at::Tensor derived = tensor;
      for (const auto& [group, size] : changes) {
        for (const Dimension& dimension : group->dimensions) {
          if (dimension.first == t) derived = OfSize(derived, dimension.second, size);
        }
      }
      return derived.clone();
    });
  }

  const RecordExample& record_;
  const std::vector<Inputs>& examples_;
  std::vector<Sizes> sizes_;  // by example
  std::set<Sizes> tried_;     // with which nothing was learned, at one of which the model may do something else
  std::vector<Group> groups_;
  bool unfit_ = false;               // a number followed no size in what was tried last
  std::optional<Recording> of_one_;  // what was learned of the only group, as long as there is no other
};

}  // namespace

Recording RecordSizes(Model& model, const std::vector<std::vector<c10::IValue>>& examples,
                      const RecordOptions& options) {
  // Every run begins as the first one did, and the model is left as that one leaves it.
  const std::shared_ptr<ModelState> before = model.KeepState();
  std::shared_ptr<ModelState> after;
  const RecordExample record = [&](const std::vector<c10::IValue>& inputs, size_t) {
    before->Restore();
    Recording recording = Record(model, inputs, options);
    if (after == nullptr) {
      after = model.KeepState();
    } else {
      TakeBackWrites(model, *recording.program);
    }
    return recording;
  };
  const auto restore = [&] { (after != nullptr ? after : before)->Restore(); };
  try {
    Recording recording = RecordSizes(record, examples);
    restore();
    return recording;
  } catch (...) {
    restore();
    throw;
  }
}

Recording RecordSizes(const RecordExample& record, const std::vector<std::vector<c10::IValue>>& examples) {
  if (examples.empty()) throw InvalidArgument("learning sizes takes an example");
  Deriver deriver(record, examples);
  return examples.size() == 1 ? deriver.Derive() : deriver.Extend();
}

}  // namespace addend
