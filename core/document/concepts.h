// Concepts: components that people are told of as one (a question of a form that is a one-hot block, an embedding, a
// column by a better name), and what is said of them. A file describes them once for a model; reasons.h tells decisions
// in them.
#ifndef ADDEND_CORE_DOCUMENT_CONCEPTS_H_
#define ADDEND_CORE_DOCUMENT_CONCEPTS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace addend {

// A text with placeholders: "{concept} is {value} {unit}". {{ and }} stand for braces.
class TextTemplate {
 public:
  enum class Placeholder { kNone, kConcept, kValue, kUnit, kContribution, kBaseline };
  struct Piece {
    std::string text;  // where there is no placeholder
    Placeholder placeholder = Placeholder::kNone;
  };

  // `owner` stands in messages: "the text of the concept Income". Throws InvalidArgument for an unknown placeholder,
  // with the list of those that there are, and for a brace that is neither part of one nor doubled.
  TextTemplate(const std::string& text, const std::string& owner);

  bool Asks(Placeholder placeholder) const;
  const std::vector<Piece>& pieces() const { return pieces_; }

 private:
  std::vector<Piece> pieces_;
};

struct Concept {
  std::string name;
  std::string code;                     // what a catalogue of reasons calls it; may be empty
  std::vector<std::string> components;  // their names; one that ends with * means all that begin so
  std::optional<std::string> unit;
  std::optional<int> decimals;  // of numbers; none: six significant digits
  // People are shown offset + scale * element, because models are given standardized columns.
  double scale = 1;
  double offset = 0;
  // The components are a one-hot block: its value is the name of the component that is 1.
  bool one_hot = false;
  // Words for values: of one-hot blocks for names of components, otherwise for numbers as they would be shown.
  std::map<std::string, std::string> words;
  std::optional<TextTemplate> text;  // none: that of the description
};

// A description of concepts and of how reasons are chosen among them.
struct Concepts {
  enum class Side { kAdverse, kFavourable };

  bool adverse_is_negative = true;  // which sign of a contribution speaks against whom the decision is about
  Side side = Side::kAdverse;       // which reasons are given
  int64_t at_most = 4;
  double threshold = 0;        // the least magnitude of a reason, in the unit of the target
  double threshold_share = 0;  // the same as a share of |value - reference|
  TextTemplate text = TextTemplate("{concept}", "the text");  // of concepts without a text of their own
  std::vector<Concept> list;

  // Whether a contribution with this sign is a reason's.
  bool negative() const { return adverse_is_negative == (side == Side::kAdverse); }
};

// Reads {"format": "addend.concepts", "version": 1, ...}; docs/schemas has the schema. Throws InvalidArgument that
// names the key or the concept: for text that is no such JSON, keys that do not exist, unknown placeholders, {unit}
// without a unit, two concepts of one name, and components that are named twice.
Concepts ReadConcepts(const std::string& json);

// A concept among the components of a run.
struct BoundConcept {
  std::string name;
  const Concept* described = nullptr;  // null: a component that no concept names, which stands for itself
  std::vector<int64_t> components;
};

// Every component in exactly one concept: those of the description, in its order, then the components that stand for
// themselves, in theirs. Refers to `concepts`. Throws InvalidArgument where a concept names no component of these, two
// concepts claim one, or a concept has the name of a component that stands for itself.
std::vector<BoundConcept> BindConcepts(const Concepts& concepts, const std::vector<std::string>& components);

}  // namespace addend

#endif  // ADDEND_CORE_DOCUMENT_CONCEPTS_H_
