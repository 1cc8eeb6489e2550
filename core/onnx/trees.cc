// Ensembles of decision trees: TreeEnsemble, and the older TreeEnsembleRegressor and TreeEnsembleClassifier.
//
// Note [Trees of a file]
// A file lists nodes, which a tree's number and their own number name, and weights by the numbers of leaves;
// TreeEnsemble lists branches and leaves apart. Both become the tensors of addend::tree_ensemble when the model is
// loaded: branches in an order in which parents come first (see Note [Tree ensembles] in core/intercept). What follows
// the sums of an ensemble (base values, a transform) are operators behind it.
#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/text.h"
#include "core/intercept/operator.h"
#include "core/intercept/own_operators.h"
#include "core/intercept/tracing_scope.h"
#include "core/intercept/tree_ensemble.h"
#include "core/onnx/context.h"
#include "core/onnx/families.h"
#include "core/onnx/operands.h"
#include "core/onnx/scores.h"

namespace addend::onnx {
namespace {

using at::Tensor;
using Integers = std::vector<int64_t>;

constexpr int64_t kMember = 6;  // a mode of TreeEnsemble: one of a set

// A node of a tree as a file has it.
struct Node {
  bool is_leaf = false;
  int64_t feature = 0;
  int64_t mode = 0;
  std::vector<double> thresholds;  // the comparison holds for any of them
  bool missing_true = false;
  int64_t if_true = 0;  // places among the nodes
  int64_t if_false = 0;
  std::vector<TreeEnsemble::Weight> weights;
};

// ---------------------------------------------------------------------------------------------------------- as tensors

Tensor IntegerTensor(const Integers& list) { return at::tensor(list, at::kLong); }

// Takes each node once, so that what is built is no larger than the file.
class Nodes {
 public:
  Nodes(const Context& context, std::vector<Node> nodes)
      : context_(context), nodes_(std::move(nodes)), taken_(nodes_.size(), false) {}

  // Throws where some node was not taken: no path leads to it.
  void RequireAllTaken() const {
    if (std::find(taken_.begin(), taken_.end(), false) == taken_.end()) return;
    throw context_.Invalid("no path leads to some node of a tree");
  }

  Node Take(int64_t place) const {
    const auto k = static_cast<size_t>(place);
    if (taken_[k]) throw context_.Invalid("a node of a tree is the child of two nodes, or of itself");
    taken_[k] = true;
    return std::move(nodes_[k]);
  }

 private:
  const Context& context_;
  mutable std::vector<Node> nodes_;
  mutable std::vector<bool> taken_;
};

// The tensors of an ensemble, in the order of the operator's arguments, made of trees one by one.
class Builder {
 public:
  void AddTree(const Nodes& nodes, int64_t root) {
    // Nodes that are still to be added, and where their number is to stand.
    struct Turn {
      int64_t place;
      size_t slot;  // in `children_`; kRoot: it is the root
    };
    constexpr size_t kRoot = static_cast<size_t>(-1);
    std::vector<Turn> ahead = {{root, kRoot}};
    while (!ahead.empty()) {
      const Turn turn = ahead.back();
      ahead.pop_back();
      const Node node = nodes.Take(turn.place);
      const int64_t number = node.is_leaf ? AddLeaf(node) : AddBranches(node);
      (turn.slot == kRoot ? roots_.emplace_back() : children_[turn.slot]) = number;
      // A chain's last branch has the false child, and each of its branches the true one.
      if (turn.slot != kRoot && turn.slot % 2 == 0) FillChain(turn.slot, number);
      if (node.is_leaf) continue;
      const auto first = static_cast<size_t>(number);
      const size_t last = first + node.thresholds.size() - 1;
      ahead.push_back({node.if_false, 2 * last + 1});
      ahead.push_back({node.if_true, 2 * first});
    }
  }

  // The tensors, and behind them how many features a row needs. `thresholds` and `weights`: of these types.
  std::vector<Tensor> Take(at::ScalarType thresholds, at::ScalarType weights) const {
    return {IntegerTensor(roots_),
            IntegerTensor(features_),
            IntegerTensor(modes_),
            at::tensor(thresholds_, at::kDouble).to(thresholds),
            IntegerTensor(children_).reshape({-1, 2}),
            IntegerTensor(missing_true_).to(at::kBool),
            IntegerTensor(starts_),
            IntegerTensor(targets_),
            at::tensor(weights_, at::kDouble).to(weights),
            at::tensor(features_.empty() ? 0 : *std::max_element(features_.begin(), features_.end()) + 1, at::kLong)};
  }

 private:
  int64_t AddLeaf(const Node& leaf) {
    for (const TreeEnsemble::Weight& w : leaf.weights) {
      targets_.push_back(w.target);
      weights_.push_back(w.weight);
    }
    starts_.push_back(static_cast<int64_t>(weights_.size()));
    return 1 - static_cast<int64_t>(starts_.size());
  }

  int64_t AddBranches(const Node& node) {
    const auto first = static_cast<int64_t>(features_.size());
    for (size_t k = 0; k < node.thresholds.size(); ++k) {
      features_.push_back(node.feature);
      modes_.push_back(node.mode);
      thresholds_.push_back(node.thresholds[k]);
      missing_true_.push_back(node.missing_true ? 1 : 0);
      children_.push_back(0);
      children_.push_back(first + static_cast<int64_t>(k) + 1);
    }
    chain_ends_.resize(features_.size(), static_cast<int64_t>(features_.size()));
    return first;
  }

  // Gives all branches of a chain the true child of its first.
  void FillChain(size_t slot, int64_t number) {
    const size_t first = slot / 2;
    for (auto k = first; k < static_cast<size_t>(chain_ends_[first]); ++k) children_[2 * k] = number;
  }

  Integers roots_, features_, modes_, children_, missing_true_, targets_;
  Integers starts_ = {0};
  Integers chain_ends_;  // by branch: behind the last of its chain
  std::vector<double> thresholds_, weights_;
};

// ----------------------------------------------------------------------------------------------- numbers of attributes

// A list of numbers in `name`, or, from version 3 on, in a tensor: name_as_tensor.
struct Reals {
  std::vector<double> numbers;
  at::ScalarType type = at::kFloat;
};

Reals TensorReals(const Context& context, const char* name) {
  const Tensor numbers = context.TensorAttribute(name).known;
  if (!c10::isFloatingType(numbers.scalar_type())) throw context.Invalid(absl::StrCat(name, " are no floats"));
  const Tensor flat = numbers.to(at::kDouble).contiguous();
  const double* data = flat.data_ptr<double>();
  return {std::vector<double>(data, data + flat.numel()), numbers.scalar_type()};
}

Reals RealsOf(const Context& context, const std::string& name) {
  const std::string as_tensor = name + "_as_tensor";
  if (context.HasAttribute(as_tensor)) return TensorReals(context, as_tensor.c_str());
  return {context.FloatsAttribute(name), at::kFloat};
}

void RequireLength(const Context& context, size_t length, size_t needed, const char* name) {
  if (length == needed) return;
  throw context.Invalid(absl::StrCat("the attribute ", name, " has ", length, " elements, not ", needed));
}

int64_t ModeOf(const Context& context, const std::string& word) {
  static const char* const words[] = {"BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"};
  const auto* const found = std::find(std::begin(words), std::end(words), word);
  if (found == std::end(words)) throw context.Invalid(absl::StrCat("the mode ", Quoted(word), " is none"));
  return found - std::begin(words);
}

int64_t NumTargets(const Context& context, int64_t least = 1) {
  const int64_t count = context.IntAttribute("n_targets", least);
  if (count < 1) throw context.Invalid(absl::StrCat("n_targets is ", count));
  return count;
}

[[noreturn]] void RefuseAggregate(const Context& context, const std::string& word) {
  throw context.Refused(absl::StrCat("the trees are combined by ", word,
                                     ", of which no exact contributions are known; ", "SUM and AVERAGE are supported"));
}

// ------------------------------------------------------------------------------------------------- the older operators

// The nodes of TreeEnsembleRegressor and TreeEnsembleClassifier, sorted by tree and number.
class OldNodes {
 public:
  // `prefix`: of the attributes with weights, "target_" or "class_".
  OldNodes(const Context& context, const std::string& prefix) : context_(context), prefix_(prefix) {
    trees_ = context.IntsAttribute("nodes_treeids");
    ids_ = context.IntsAttribute("nodes_nodeids");
    const size_t count = trees_.size();
    RequireLength(context, ids_.size(), count, "nodes_nodeids");
    order_.resize(count);
    std::iota(order_.begin(), order_.end(), 0);
    const auto before = [&](int64_t a, int64_t b) { return KeyOf(a) < KeyOf(b); };
    if (!std::is_sorted(order_.begin(), order_.end(), before)) std::stable_sort(order_.begin(), order_.end(), before);
    for (size_t k = 1; k < count; ++k) {
      if (KeyOf(order_[k - 1]) == KeyOf(order_[k])) throw context.Invalid("a tree has two nodes of one number");
    }
  }

  // All nodes, as the file lists them; those of a tree's `roots` are no child of another.
  std::vector<Node> Read(Integers* roots) const {
    const size_t count = trees_.size();
    std::vector<Node> nodes(count);
    ReadComparisons(&nodes);
    const Integers if_true = context_.IntsAttribute("nodes_truenodeids");
    const Integers if_false = context_.IntsAttribute("nodes_falsenodeids");
    RequireLength(context_, if_true.size(), count, "nodes_truenodeids");
    RequireLength(context_, if_false.size(), count, "nodes_falsenodeids");
    std::vector<bool> is_child(count, false);
    for (size_t k = 0; k < count; ++k) {
      if (nodes[k].is_leaf) continue;
      nodes[k].if_true = PlaceOf(trees_[k], if_true[k]);
      nodes[k].if_false = PlaceOf(trees_[k], if_false[k]);
      is_child[static_cast<size_t>(nodes[k].if_true)] = true;
      is_child[static_cast<size_t>(nodes[k].if_false)] = true;
    }
    FindRoots(is_child, roots);
    return nodes;
  }

  // The leaf of each weight.
  Integers LeavesOfWeights() const {
    const Integers trees = context_.IntsAttribute(prefix_ + "treeids");
    const Integers ids = context_.IntsAttribute(prefix_ + "nodeids");
    RequireLength(context_, ids.size(), trees.size(), (prefix_ + "nodeids").c_str());
    Integers places;
    places.reserve(trees.size());
    for (size_t k = 0; k < trees.size(); ++k) places.push_back(PlaceOf(trees[k], ids[k]));
    return places;
  }

  int64_t TreeOf(int64_t place) const { return trees_[static_cast<size_t>(place)]; }

 private:
  std::pair<int64_t, int64_t> KeyOf(int64_t place) const {
    return {trees_[static_cast<size_t>(place)], ids_[static_cast<size_t>(place)]};
  }

  int64_t PlaceOf(int64_t tree, int64_t id) const {
    const std::pair<int64_t, int64_t> key(tree, id);
    const auto found = std::lower_bound(order_.begin(), order_.end(), key,
                                        [&](int64_t place, const auto& wanted) { return KeyOf(place) < wanted; });
    if (found == order_.end() || KeyOf(*found) != key) {
      throw context_.Invalid(absl::StrCat("tree ", tree, " has no node ", id));
    }
    return *found;
  }

  void ReadComparisons(std::vector<Node>* nodes) const {
    const size_t count = nodes->size();
    const Integers features = context_.IntsAttribute("nodes_featureids");
    const std::vector<double> values = RealsOf(context_, "nodes_values").numbers;
    const std::vector<std::string> modes = context_.TextsAttribute("nodes_modes");
    const Integers missing = context_.IntsAttribute("nodes_missing_value_tracks_true", Integers(count, 0));
    RequireLength(context_, features.size(), count, "nodes_featureids");
    RequireLength(context_, values.size(), count, "nodes_values");
    RequireLength(context_, modes.size(), count, "nodes_modes");
    RequireLength(context_, missing.size(), count, "nodes_missing_value_tracks_true");
    for (size_t k = 0; k < count; ++k) {
      Node& node = (*nodes)[k];
      node.is_leaf = modes[k] == "LEAF";
      if (node.is_leaf) continue;
      node.mode = ModeOf(context_, modes[k]);
      if (features[k] < 0) throw context_.Invalid(absl::StrCat("a branch reads feature ", features[k]));
      node.feature = features[k];
      node.thresholds = {values[k]};
      node.missing_true = missing[k] != 0;
    }
  }

  void FindRoots(const std::vector<bool>& is_child, Integers* roots) const {
    for (size_t k = 0; k < order_.size(); ++k) {
      if (!is_child[static_cast<size_t>(order_[k])]) roots->push_back(order_[k]);
    }
    size_t num_trees = 0;
    for (size_t k = 0; k < order_.size(); ++k) num_trees += k == 0 || TreeOf(order_[k - 1]) != TreeOf(order_[k]);
    for (size_t k = 1; k < roots->size(); ++k) {
      if (TreeOf((*roots)[k - 1]) == TreeOf((*roots)[k])) throw context_.Invalid("a tree has two roots");
    }
    if (roots->size() != num_trees) throw context_.Invalid("a tree has no root");
  }

  const Context& context_;
  const std::string prefix_;
  Integers trees_, ids_;
  Integers order_;  // places by tree and number
};

// Tensors behind those of the ensemble itself.
enum Prepared : size_t { kFeatures = 9, kBaseValues, kForm, kLabels };

// How the sums of an ensemble become the scores of classes.
enum class Form : int64_t {
  kScores,         // one for each class
  kOfTwo,          // one for two classes: -s and s
  kOfTwoPositive,  // one for two classes: 1 - s and s
};

// The ensemble of an older operator. `ids`: the target of each weight.
std::vector<Tensor> OldTensors(const Context& context, const std::string& prefix, const Integers& ids,
                               int64_t num_targets) {
  const OldNodes old(context, prefix);
  Integers roots;
  std::vector<Node> nodes = old.Read(&roots);
  const Integers leaves = old.LeavesOfWeights();
  const Reals weights = RealsOf(context, prefix + "weights");
  RequireLength(context, ids.size(), leaves.size(), (prefix + "ids").c_str());
  RequireLength(context, weights.numbers.size(), leaves.size(), (prefix + "weights").c_str());
  for (size_t k = 0; k < leaves.size(); ++k) {
    Node& leaf = nodes[static_cast<size_t>(leaves[k])];
    if (!leaf.is_leaf) throw context.Invalid("a weight belongs to a branch");
    if (ids[k] < 0 || ids[k] >= num_targets) {
      throw context.Invalid(absl::StrCat("a weight is of target ", ids[k], " of ", num_targets));
    }
    const auto same = [&](const TreeEnsemble::Weight& w) { return w.target == ids[k]; };
    if (std::any_of(leaf.weights.begin(), leaf.weights.end(), same)) {
      throw context.Invalid("a leaf has two weights of one target");
    }
    leaf.weights.push_back({ids[k], weights.numbers[k]});
  }
  const Nodes all(context, std::move(nodes));
  Builder builder;
  for (const int64_t root : roots) builder.AddTree(all, root);
  all.RequireAllTaken();
  return builder.Take(RealsOf(context, "nodes_values").type, weights.type);
}

// Whether each row gets a weight of the target: one tree has it at every leaf.
bool IsAlwaysScored(const std::vector<Tensor>& ensemble, int64_t target) {
  const int64_t* starts = ensemble[6].data_ptr<int64_t>();
  const int64_t* targets = ensemble[7].data_ptr<int64_t>();
  const int64_t* children = ensemble[4].data_ptr<int64_t>();
  const int64_t* roots = ensemble[0].data_ptr<int64_t>();
  const int64_t num_branches = ensemble[1].numel();
  const auto has = [&](int64_t node) {
    const int64_t* begin = targets + starts[-1 - node];
    const int64_t* end = targets + starts[-node];
    return std::find(begin, end, target) != end;
  };
  // Children come behind their parents.
  std::vector<bool> always(static_cast<size_t>(num_branches), true);
  const auto scored = [&](int64_t node) { return node < 0 ? has(node) : always[static_cast<size_t>(node)]; };
  for (int64_t k = num_branches; k-- > 0;) {
    always[static_cast<size_t>(k)] = scored(children[2 * k]) && scored(children[2 * k + 1]);
  }
  return std::any_of(roots, roots + ensemble[0].numel(), scored);
}

// Throws Unimplemented unless each row gets a weight of each target. `kind`: how targets are called.
void RequireScores(const Context& context, const std::vector<Tensor>& ensemble, int64_t num_targets, const char* kind,
                   const char* consequence) {
  for (int64_t k = 0; k < num_targets; ++k) {
    if (IsAlwaysScored(ensemble, k)) continue;
    throw context.Refused(absl::StrCat("no tree gives ", kind, " ", k, " a weight at each of its leaves, so that some ",
                                       "rows have no score of it", consequence, "; give leaves a weight of 0"));
  }
}

std::vector<Tensor> PrepareRegressor(const Context& context) {
  const std::string aggregate = context.TextAttribute("aggregate_function", "SUM");
  if (aggregate != "SUM" && aggregate != "AVERAGE") RefuseAggregate(context, aggregate);
  const int64_t num_targets = NumTargets(context);
  RequireTransform(context, num_targets, PostTransformOf(context));
  std::vector<Tensor> tensors = OldTensors(context, "target_", context.IntsAttribute("target_ids"), num_targets);
  const Reals base = RealsOf(context, "base_values");
  if (!base.numbers.empty())
    RequireLength(context, base.numbers.size(), static_cast<size_t>(num_targets), "base_values");
  const bool any_base = std::any_of(base.numbers.begin(), base.numbers.end(), [](double b) { return b != 0; });
  if (num_targets > 1 && any_base) {
    RequireScores(context, tensors, num_targets, "target", ", to which ONNX Runtime adds no base value");
  }
  tensors.push_back(at::tensor(base.numbers, at::kDouble).to(base.type));
  return tensors;
}

std::vector<Tensor> PrepareClassifier(const Context& context) {
  const int64_t num_classes = NumLabels(context, "classlabels_int64s");
  Integers ids = context.IntsAttribute("class_ids");
  const Reals base = RealsOf(context, "base_values");
  const std::vector<double> weights = RealsOf(context, "class_weights").numbers;
  const PostTransform transform = PostTransformOf(context);
  const bool only_first = std::all_of(ids.begin(), ids.end(), [](int64_t id) { return id == 0; });
  Form form = Form::kScores;
  if (num_classes == 2 && only_first) {
    RequireTransformOfTwo(context, transform);
    const bool is_positive = std::all_of(weights.begin(), weights.end(), [](double w) { return w >= 0; });
    form = is_positive ? Form::kOfTwoPositive : Form::kOfTwo;
  } else if (num_classes < 2) {
    throw context.Refused("it has one class, which is no choice");
  } else {
    RequireTransform(context, num_classes, transform);
  }
  const int64_t num_scores = form == Form::kScores ? num_classes : 1;
  if (num_classes == 2 && !base.numbers.empty() && (form == Form::kScores || base.numbers.size() != 1)) {
    throw context.Refused(
        "two classes have base_values beside a score for each class, or two of them beside one score, of which the "
        "standard says nothing, and which ONNX Runtime does not add; add them to the weights of a tree");
  }
  if (!base.numbers.empty())
    RequireLength(context, base.numbers.size(), static_cast<size_t>(num_scores), "base_values");
  std::vector<Tensor> tensors = OldTensors(context, "class_", ids, num_scores);
  // Rows without a score of a class are labelled as if it were not there.
  const bool any_negative = std::any_of(weights.begin(), weights.end(), [](double w) { return w < 0; });
  const bool may_lack = form != Form::kScores || !base.numbers.empty() || (num_classes > 2 && !any_negative);
  if (!may_lack) RequireScores(context, tensors, num_scores, "class", "");
  tensors.push_back(at::tensor(base.numbers, at::kDouble).to(base.type));
  tensors.push_back(at::tensor(static_cast<int64_t>(form), at::kLong));
  tensors.push_back(LabelsOf(context, "classlabels_int64s"));
  return tensors;
}

int64_t FeaturesNeeded(const Context& context) {
  const TracingPause pause;
  return context.Prepared(kFeatures).item<int64_t>();
}

// The sums of the trees for each row, in the dtype of the weights. `average`: over the number of trees.
Tensor SumsOf(const Context& context, int64_t num_targets, bool average) {
  static const addend::Operator& trees = *new addend::Operator(*addend::Operator::Find(kTreeEnsemble, ""));
  const Tensor x = RowsOf(context);
  const int64_t needed = FeaturesNeeded(context);
  if (x.size(1) < needed) {
    throw context.Invalid(absl::StrCat("a branch reads feature ", needed - 1, " of rows with ", x.size(1)));
  }
  Stack stack = {x};
  for (size_t k = 0; k < kFeatures; ++k) stack.emplace_back(context.Prepared(k));
  stack.emplace_back(num_targets);
  trees.Call(&stack);
  const Tensor sums = stack.back().toTensor();
  return average ? at::div(sums, context.Prepared(0).numel()) : sums;
}

Tensor WithBaseValues(const Context& context, const Tensor& sums) {
  const Tensor& base = context.Prepared(kBaseValues);
  return base.numel() == 0 ? sums : at::add(sums, InType(base, sums.scalar_type()));
}

// Sums in the type of the results. What double precision adds up is rounded once.
Tensor Floats(const Context& context, const Tensor& sums) { return InType(sums, context.TypeOf(DataType::kFloat)); }

Results TreeEnsembleRegressor(const Context& context) {
  const bool average = context.TextAttribute("aggregate_function", "SUM") == "AVERAGE";
  const Tensor sums = WithBaseValues(context, SumsOf(context, NumTargets(context), average));
  return Floats(context, Transformed(context, sums, PostTransformOf(context)));
}

Form FormOf(const Context& context) {
  const TracingPause pause;
  return static_cast<Form>(context.Prepared(kForm).item<int64_t>());
}

Results TreeEnsembleClassifier(const Context& context) {
  const PostTransform transform = PostTransformOf(context);
  const Form form = FormOf(context);
  const Tensor& labels = context.Prepared(kLabels);
  const int64_t num_scores = form == Form::kScores ? NumLabels(context, "classlabels_int64s") : 1;
  const Tensor sums = WithBaseValues(context, SumsOf(context, num_scores, /*average=*/false));
  if (form == Form::kScores) {
    const Tensor label = context.Wants(0) ? LabelAt(labels, at::argmax(sums, 1)) : Tensor();
    return {label, Floats(context, Transformed(context, sums, transform))};
  }
  const bool is_positive = form == Form::kOfTwoPositive;
  Tensor label;
  if (context.Wants(0)) {
    label = LabelAt(labels, at::gt(at::select(sums, 1, 0), is_positive ? 0.5 : 0).to(at::kLong));
  }
  return {label, Floats(context, ScoresOfTwo(sums, is_positive, transform))};
}

// ------------------------------------------------------------------------------------------------------- TreeEnsemble

int64_t AggregateOf(const Context& context) {
  const int64_t aggregate = context.IntAttribute("aggregate_function", 1);
  if (aggregate < 0 || aggregate > 3) throw context.Invalid(absl::StrCat("aggregate_function is ", aggregate));
  if (aggregate > 1) RefuseAggregate(context, aggregate == 2 ? "MIN" : "MAX");
  return aggregate;
}

PostTransform TransformByNumber(const Context& context) {
  const int64_t number = context.IntAttribute("post_transform", 0);
  if (number < 0 || number > 4) throw context.Invalid(absl::StrCat("post_transform is ", number));
  if (number == 1 || number == 2) {
    throw context.Refused(
        "the standard calls SOFTMAX post_transform 1 and LOGISTIC 2, and ONNX Runtime the reverse; write the model "
        "with post_transform 0 and a node behind it");
  }
  return static_cast<PostTransform>(number);
}

// The sets of the branches that test for one of many, which NaN separates.
std::vector<std::vector<double>> SetsOf(const Context& context) {
  std::vector<std::vector<double>> sets(1);
  if (!context.HasAttribute("membership_values")) return {};
  for (const double member : TensorReals(context, "membership_values").numbers) {
    if (std::isnan(member)) {
      sets.emplace_back();
    } else {
      sets.back().push_back(member);
    }
  }
  return sets;
}

// Branches of a TreeEnsemble, and behind them its leaves.
std::vector<Node> BranchesAndLeaves(const Context& context, int64_t num_targets, const Reals& splits,
                                    const Reals& weights) {
  const Integers features = context.IntsAttribute("nodes_featureids");
  const size_t count = features.size();
  const Tensor modes = context.TensorAttribute("nodes_modes").known.to(at::kLong).contiguous();
  const Integers if_true = context.IntsAttribute("nodes_truenodeids"),
                 if_false = context.IntsAttribute("nodes_falsenodeids");
  const Integers true_leaf = context.IntsAttribute("nodes_trueleafs"),
                 false_leaf = context.IntsAttribute("nodes_falseleafs");
  const Integers missing = context.IntsAttribute("nodes_missing_value_tracks_true", Integers(count, 0));
  RequireLength(context, static_cast<size_t>(modes.numel()), count, "nodes_modes");
  RequireLength(context, splits.numbers.size(), count, "nodes_splits");
  RequireLength(context, if_true.size(), count, "nodes_truenodeids");
  RequireLength(context, if_false.size(), count, "nodes_falsenodeids");
  RequireLength(context, true_leaf.size(), count, "nodes_trueleafs");
  RequireLength(context, false_leaf.size(), count, "nodes_falseleafs");
  RequireLength(context, missing.size(), count, "nodes_missing_value_tracks_true");
  const Integers ids = context.IntsAttribute("leaf_targetids");
  RequireLength(context, weights.numbers.size(), ids.size(), "leaf_weights");
  const auto place = [&](int64_t number, int64_t is_leaf) {
    if (number < 0 || number >= static_cast<int64_t>(is_leaf != 0 ? ids.size() : count)) {
      throw context.Invalid(
          absl::StrCat("a branch names ", is_leaf != 0 ? "leaf " : "branch ", number, ", which is not there"));
    }
    return is_leaf != 0 ? static_cast<int64_t>(count) + number : number;
  };
  const std::vector<std::vector<double>> sets = SetsOf(context);
  size_t next_set = 0;
  std::vector<Node> nodes(count + ids.size());
  for (size_t k = 0; k < count; ++k) {
    Node& node = nodes[k];
    if (features[k] < 0) throw context.Invalid(absl::StrCat("a branch reads feature ", features[k]));
    node.feature = features[k];
    node.mode = modes.data_ptr<int64_t>()[k];
    node.thresholds = {splits.numbers[k]};
    node.missing_true = missing[k] != 0;
    node.if_true = place(if_true[k], true_leaf[k]);
    node.if_false = place(if_false[k], false_leaf[k]);
    if (node.mode != kMember) {
      if (node.mode < 0 || node.mode > kMember) throw context.Invalid(absl::StrCat("the mode ", node.mode, " is none"));
      continue;
    }
    if (next_set >= sets.size())
      throw context.Invalid("membership_values has fewer sets than there are branches of them");
    node.mode = static_cast<int64_t>(BranchMode::kEqual);
    node.thresholds = sets[next_set++];
    if (node.thresholds.empty()) throw context.Invalid("a set of membership_values is empty");
  }
  for (size_t k = 0; k < ids.size(); ++k) {
    Node& leaf = nodes[count + k];
    leaf.is_leaf = true;
    if (ids[k] < 0 || ids[k] >= num_targets) {
      throw context.Invalid(absl::StrCat("a leaf is of target ", ids[k], " of ", num_targets));
    }
    leaf.weights = {{ids[k], weights.numbers[k]}};
  }
  return nodes;
}

std::vector<Tensor> PrepareTreeEnsemble(const Context& context) {
  AggregateOf(context);
  const int64_t num_targets = NumTargets(context);
  RequireTransform(context, num_targets, TransformByNumber(context));
  const Reals splits = TensorReals(context, "nodes_splits"), weights = TensorReals(context, "leaf_weights");
  std::vector<Node> read = BranchesAndLeaves(context, num_targets, splits, weights);
  Integers roots = context.IntsAttribute("tree_roots");
  const auto num_branches = static_cast<int64_t>(context.IntsAttribute("nodes_featureids").size());
  for (const int64_t root : roots) {
    if (root < 0 || root >= num_branches) throw context.Invalid(absl::StrCat("the root ", root, " is no branch"));
    // A tree of one leaf is written as a branch both of whose children are that leaf.
    Node& node = read[static_cast<size_t>(root)];
    if (node.if_true == node.if_false && node.if_true >= num_branches) {
      node = Node(read[static_cast<size_t>(node.if_true)]);
    }
  }
  const Nodes nodes(context, std::move(read));
  Builder builder;
  for (const int64_t root : roots) builder.AddTree(nodes, root);
  const auto wide = [](at::ScalarType type) { return type == at::kDouble ? at::kDouble : at::kFloat; };
  std::vector<Tensor> tensors = builder.Take(wide(splits.type), wide(weights.type));
  tensors.push_back(at::zeros({0}, at::kFloat));
  return tensors;
}

Results RunTreeEnsemble(const Context& context) {
  const Tensor sums = SumsOf(context, NumTargets(context), AggregateOf(context) == 0);
  return InType(Transformed(context, sums, TransformByNumber(context)), context.Tensor(0).scalar_type());
}

std::vector<std::string> Joined(std::vector<std::string> names, const std::vector<std::string>& more) {
  names.insert(names.end(), more.begin(), more.end());
  return names;
}

}  // namespace

void RegisterTrees(OperatorTable& table) {
  // The lists of nodes and weights, which may be long.
  const std::vector<std::string> nodes = {"nodes_treeids",
                                          "nodes_nodeids",
                                          "nodes_featureids",
                                          "nodes_values",
                                          "nodes_modes",
                                          "nodes_truenodeids",
                                          "nodes_falsenodeids",
                                          "nodes_hitrates",
                                          "nodes_missing_value_tracks_true",
                                          "base_values",
                                          "nodes_hitrates_as_tensor",
                                          "nodes_values_as_tensor",
                                          "base_values_as_tensor"};
  const auto lists = [&](const std::string& prefix) {
    return Joined(nodes, {prefix + "treeids", prefix + "nodeids", prefix + "ids", prefix + "weights",
                          prefix + "weights_as_tensor"});
  };
  const std::vector<std::string> of_targets = lists("target_"), of_classes = lists("class_");
  table.AddTo(kMachineLearningDomain, "TreeEnsembleRegressor", 1, TreeEnsembleRegressor)
      .Attributes(Joined(of_targets, {"n_targets", "aggregate_function", "post_transform"}))
      .PreparedBy(PrepareRegressor, of_targets);
  table.AddTo(kMachineLearningDomain, "TreeEnsembleClassifier", 1, TreeEnsembleClassifier)
      .Attributes(Joined(of_classes, {"classlabels_int64s", "classlabels_strings", "post_transform"}))
      .PreparedBy(PrepareClassifier, of_classes);
  const std::vector<std::string> of_ensemble = {"tree_roots",
                                                "nodes_featureids",
                                                "nodes_modes",
                                                "nodes_splits",
                                                "nodes_truenodeids",
                                                "nodes_falsenodeids",
                                                "nodes_trueleafs",
                                                "nodes_falseleafs",
                                                "leaf_targetids",
                                                "leaf_weights",
                                                "membership_values",
                                                "nodes_hitrates",
                                                "nodes_missing_value_tracks_true"};
  table.AddTo(kMachineLearningDomain, "TreeEnsemble", 5, RunTreeEnsemble)
      .Attributes(Joined(of_ensemble, {"n_targets", "aggregate_function", "post_transform"}))
      .PreparedBy(PrepareTreeEnsemble, of_ensemble);
}

}  // namespace addend::onnx
