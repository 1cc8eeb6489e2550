#include "core/exported/nesting.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/exported/tree_spec.h"
#include "core/program/structure.h"

namespace addend::exported {
namespace {

using c10::IValue;

bool Named(const TreeSpec& spec) { return !spec.keys.empty() && spec.keys.size() == spec.children.size(); }

std::string KeyText(const IValue& key) {
  if (key.isString()) return absl::StrCat("['", key.toStringRef(), "']");
  return key.isInt() ? absl::StrCat("[", key.toInt(), "]") : "[...]";
}

void AddLeaves(const TreeSpec& spec, const std::string& name, const std::string& path,
               std::vector<ProgramLeaf>* leaves) {
  if (spec.kind == TreeSpec::Kind::kLeaf) {
    leaves->push_back({name, path});
    return;
  }
  for (size_t k = 0; k < spec.children.size(); ++k) {
    const std::string key = Named(spec) ? KeyText(spec.keys[k]) : absl::StrCat("[", k, "]");
    AddLeaves(spec.children[k], name + key, path + key, leaves);
  }
}

std::string TakeEntries(const IValue& value, const TreeSpec& spec, const std::string& name,
                        std::vector<IValue>* leaves) {
  const auto dict = value.toGenericDict();
  if (dict.size() != spec.children.size()) {
    return absl::StrCat(name, " has ", dict.size(), " entries, the model was exported with ", spec.children.size());
  }
  for (size_t k = 0; k < spec.children.size(); ++k) {
    bool found = false;
    for (const auto& entry : dict) {
      if (!SamePlain(entry.key(), spec.keys[k])) continue;
      found = true;
      std::string wrong = TakeLeaves(entry.value(), spec.children[k], name + KeyText(spec.keys[k]), leaves);
      if (!wrong.empty()) return wrong;
    }
    if (!found) return absl::StrCat(name, KeyText(spec.keys[k]), " is missing");
  }
  return "";
}

Structure StructureOf(const TreeSpec& spec, const std::vector<IValue>& leaves, size_t* next,
                      std::vector<at::Tensor>* tensors) {
  Structure structure;
  if (spec.kind == TreeSpec::Kind::kLeaf) {
    const IValue& leaf = leaves.at((*next)++);
    if (leaf.isTensor()) {
      structure.kind = Structure::Kind::kTensor;
      structure.tensor = static_cast<int>(tensors->size());
      tensors->push_back(leaf.toTensor());
    } else {
      structure.plain = leaf;
    }
    return structure;
  }
  structure.kind = Structure::Kind::kTuple;
  if (spec.kind == TreeSpec::Kind::kList) {
    structure.kind = Structure::Kind::kList;
    structure.type = "Tensor";
  } else if (spec.kind == TreeSpec::Kind::kDict || Named(spec)) {
    structure.kind = Structure::Kind::kDict;
    structure.type = "Tensor";
    structure.keys = spec.keys;
  }
  for (const TreeSpec& child : spec.children) {
    structure.elements.push_back(StructureOf(child, leaves, next, tensors));
  }
  return structure;
}

}  // namespace

std::vector<ProgramArgument> ArgumentsOf(const Program& program, size_t num_leaves) {
  std::vector<ProgramArgument> arguments;
  const TreeSpec& spec = program.in_spec;
  const bool told = spec.children.size() == 2 && CountLeaves(spec) == num_leaves &&
                    (spec.children[1].children.empty() || Named(spec.children[1]));
  if (told) {
    for (const TreeSpec& child : spec.children[0].children) arguments.push_back({"", child});
    for (size_t k = 0; k < spec.children[1].children.size(); ++k) {
      const IValue& key = spec.children[1].keys[k];
      arguments.push_back({key.isString() ? key.toStringRef() : "", spec.children[1].children[k]});
    }
  } else {
    arguments.resize(num_leaves);
  }
  for (size_t k = 0; k < arguments.size(); ++k) {
    std::string& name = arguments[k].name;
    if (name.empty() && k < program.forward_arg_names.size()) name = program.forward_arg_names[k];
    if (name.empty()) name = absl::StrCat("input_", k);
  }
  return arguments;
}

std::vector<ProgramLeaf> LeavesOf(const std::vector<ProgramArgument>& arguments) {
  std::vector<ProgramLeaf> leaves;
  for (const ProgramArgument& argument : arguments) {
    AddLeaves(argument.spec, argument.name, absl::StrCat("L['", argument.name, "']"), &leaves);
  }
  return leaves;
}

std::string TakeLeaves(const IValue& value, const TreeSpec& spec, const std::string& name,
                       std::vector<IValue>* leaves) {
  if (spec.kind == TreeSpec::Kind::kLeaf) {
    if (value.isTuple() || value.isGenericDict() || (value.isList() && !value.isTensor())) {
      return absl::StrCat(name, " is a container, the model was exported with a tensor or a number");
    }
    leaves->push_back(value);
    return "";
  }
  if (value.isGenericDict() && (spec.children.empty() || Named(spec))) return TakeEntries(value, spec, name, leaves);
  if ((!value.isTuple() && !value.isList()) || spec.kind == TreeSpec::Kind::kDict) {
    return absl::StrCat(name, " is no ", spec.kind == TreeSpec::Kind::kDict ? "dictionary" : "tuple or list",
                        ", with which the model was exported");
  }
  const std::vector<IValue> elements = value.isTuple() ? value.toTupleRef().elements().vec() : value.toList().vec();
  if (elements.size() != spec.children.size()) {
    return absl::StrCat(name, " has ", elements.size(), " elements, the model was exported with ",
                        spec.children.size());
  }
  for (size_t k = 0; k < elements.size(); ++k) {
    std::string wrong = TakeLeaves(elements[k], spec.children[k], absl::StrCat(name, "[", k, "]"), leaves);
    if (!wrong.empty()) return wrong;
  }
  return "";
}

IValue Nested(const TreeSpec& spec, const std::vector<IValue>& leaves) {
  const size_t count = CountLeaves(spec);
  if (count != leaves.size()) {
    throw InvalidArgument(
        absl::StrCat("the exported program gives ", leaves.size(), " values where its structure has ", count));
  }
  size_t next = 0;
  std::vector<at::Tensor> tensors;
  const Structure structure = StructureOf(spec, leaves, &next, &tensors);
  return PutTogether(structure, [&](int k) { return tensors[static_cast<size_t>(k)]; });
}

}  // namespace addend::exported
