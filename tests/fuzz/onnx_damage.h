// Damage to ONNX models: fields of a valid file become something hostile, and lengths are made anew, so that the damage
// reaches what is behind them.
#ifndef ADDEND_TESTS_FUZZ_ONNX_DAMAGE_H_
#define ADDEND_TESTS_FUZZ_ONNX_DAMAGE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "core/onnx/onnx_testing.h"
#include "tests/fuzz/bytes.h"

namespace addend::onnx {

// --------------------------------------------------------------------------------------------- messages as they stand

// A field, whatever its message is. Bytes that are fields themselves are taken for a message.
struct Field {
  uint32_t number = 1;
  uint32_t type = 0;  // on the wire
  uint64_t bits = 0;
  std::string bytes;
  bool is_message = false;
  std::vector<Field> fields;
  int64_t claimed = -1;  // the length that it says it has
};

inline constexpr uint32_t kVarint = 0;
inline constexpr uint32_t kFixed64 = 1;
inline constexpr uint32_t kBytes = 2;
inline constexpr uint32_t kFixed32 = 5;

inline bool TakeVarint(const std::string& text, size_t* at, uint64_t* value) {
  *value = 0;
  for (int shift = 0; *at < text.size() && shift < 64; shift += 7) {
    const auto byte = static_cast<unsigned char>(text[(*at)++]);
    *value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

// Splits the bytes of a message; false where they are none.
inline bool Split(const std::string& text, int depth, std::vector<Field>* fields) {
  for (size_t at = 0; at < text.size();) {
    Field field;
    uint64_t tag = 0;
    if (!TakeVarint(text, &at, &tag) || tag < 8 || tag >= 8 * 64) return false;
    field.number = static_cast<uint32_t>(tag >> 3);
    field.type = static_cast<uint32_t>(tag & 7);
    if (field.type == kVarint) {
      if (!TakeVarint(text, &at, &field.bits)) return false;
    } else if (field.type == kFixed32 || field.type == kFixed64) {
      const size_t size = field.type == kFixed32 ? 4 : 8;
      if (text.size() - at < size) return false;
      for (size_t k = size; k-- > 0;) field.bits = field.bits << 8 | static_cast<unsigned char>(text[at + k]);
      at += size;
    } else if (field.type == kBytes) {
      uint64_t length = 0;
      if (!TakeVarint(text, &at, &length) || length > text.size() - at) return false;
      field.bytes = text.substr(at, length);
      field.is_message = depth < 12 && !field.bytes.empty() && Split(field.bytes, depth + 1, &field.fields);
      at += length;
    } else {
      return false;
    }
    fields->push_back(std::move(field));
  }
  return true;
}

inline std::string Joined(const std::vector<Field>& fields) {
  std::string text;
  for (const Field& field : fields) {
    text += VarintBytes(uint64_t{field.number} << 3 | field.type);
    switch (field.type) {
      case kVarint:
        text += VarintBytes(field.bits);
        break;
      case kFixed32:
      case kFixed64:
        for (int k = 0; k < (field.type == kFixed32 ? 4 : 8); ++k)
          text.push_back(static_cast<char>(field.bits >> 8 * k));
        break;
      case kBytes: {
        const std::string content = field.is_message ? Joined(field.fields) : field.bytes;
        text += VarintBytes(field.claimed < 0 ? content.size() : static_cast<uint64_t>(field.claimed)) + content;
        break;
      }
      default:
        break;
    }
  }
  return text;
}

// ------------------------------------------------------------------------------------------------------------- damage

inline Field* ChooseIn(std::vector<Field>& fields, Bytes& bytes) {
  if (fields.empty()) return nullptr;
  Field* field = &fields[bytes.Below(fields.size())];
  while (field->is_message && !field->fields.empty() && bytes.Next() % 8 != 0) {
    field = &field->fields[bytes.Below(field->fields.size())];
  }
  return field;
}

inline std::vector<Field>* ListOf(std::vector<Field>& fields, Bytes& bytes) {
  std::vector<Field>* list = &fields;
  for (int k = bytes.Next() % 6; k > 0 && !list->empty(); --k) {
    Field& field = (*list)[bytes.Below(list->size())];
    if (!field.is_message) break;
    list = &field.fields;
  }
  return list;
}

inline uint64_t HostileNumber(Bytes& bytes) {
  switch (bytes.Next() % 6) {
    case 0:
      return bytes.Next() % 40;
    case 1:
      return uint64_t{0} - bytes.Next() % 4;
    case 2:
      return uint64_t{1} << bytes.Below(64);
    case 3:
      return (uint64_t{1} << 63) - 1 - bytes.Next() % 4;
    default:
      return static_cast<uint64_t>(bytes.Word()) >> bytes.Below(64);
  }
}

inline void DamageText(std::string& text, Bytes& bytes) {
  const size_t where = text.empty() ? 0 : bytes.Below(65536) % text.size();
  switch (bytes.Next() % 8) {
    case 0:
      if (!text.empty()) text[where] = static_cast<char>(bytes.Next());
      break;
    case 1:
      text.insert(where, 1 + bytes.Below(4), static_cast<char>(bytes.Next()));
      break;
    case 2:
      text.erase(where, 1 + bytes.Below(8));
      break;
    case 3:
      text.resize(where);
      break;
    case 4:
      text = "../weights";
      break;
    case 5:
      text = std::to_string(static_cast<int64_t>(HostileNumber(bytes)));
      break;
    case 6:
      text.clear();
      break;
    default:
      text += text.size() < 4096 ? text : "";
      break;
  }
}

inline constexpr uint32_t kTypes[] = {kVarint, kFixed64, kBytes, kFixed32, kVarint, kBytes, 3, 7};

inline void Damage(std::vector<Field>& model, Bytes& bytes) {
  Field* field = ChooseIn(model, bytes);
  if (field == nullptr) return;
  switch (bytes.Next() % 16) {
    case 0:
      field->number = static_cast<uint32_t>(bytes.Below(32));
      break;
    case 1:
      field->type = kTypes[bytes.Next() % 8];
      break;
    case 2:
      field->claimed = static_cast<int64_t>(HostileNumber(bytes) >> 1);
      break;
    case 3: {
      const Field copy = *ChooseIn(model, bytes);  // may hold the field itself
      *field = copy;
      break;
    }
    case 4: {
      std::vector<Field>* list = ListOf(model, bytes);
      const Field copy = *field;
      list->insert(list->begin() + static_cast<std::ptrdiff_t>(bytes.Below(list->size() + 1)), copy);
      break;
    }
    case 5: {
      std::vector<Field>* list = ListOf(model, bytes);
      if (!list->empty()) list->erase(list->begin() + static_cast<std::ptrdiff_t>(bytes.Below(list->size())));
      break;
    }
    case 6: {
      std::vector<Field>* list = ListOf(model, bytes);
      if (list->size() > 1) std::swap(list->front(), (*list)[bytes.Below(list->size())]);
      break;
    }
    case 7: {
      const Field copy = *field;
      field->is_message = true;
      field->type = kBytes;
      field->fields.push_back(copy);
      break;
    }
    default:
      if (field->type == kBytes && !field->is_message) {
        DamageText(field->bytes, bytes);
      } else {
        field->bits = HostileNumber(bytes);
      }
      break;
  }
}

// Counts the fields of a list, with those inside.
inline size_t CountFields(const std::vector<Field>& fields) {
  size_t count = fields.size();
  for (const Field& field : fields) count += CountFields(field.fields);
  return count;
}

// Repeats a field many times: what a reader makes of it must not grow without bound.
inline void Grow(std::vector<Field>& model, Bytes& bytes) {
  std::vector<Field>* list = ListOf(model, bytes);
  if (list->empty()) return;
  const Field copy = (*list)[bytes.Below(list->size())];
  const std::string one = Joined({copy});
  if (one.size() > 200) return;
  const size_t count = size_t{1} << (10 + bytes.Below(9));
  // In one field without structure, which costs no more than its bytes.
  std::string many;
  for (size_t k = 0; k < count; ++k) many += one;
  Field whole;
  whole.number = bytes.Next() % 2 == 0 ? 7 : 1;  // a graph, or a node of one
  whole.type = kBytes;
  whole.bytes = Joined(*list) + many;
  if (list == &model) {
    model.push_back(whole);
  } else {
    list->push_back(whole);
    list->insert(list->end(), std::min<size_t>(count, 2000), copy);
  }
}

// A model that is made of one of the seeds: the first byte says whether what follows is a file itself instead.
inline std::string DrawModel(Bytes& bytes, const std::vector<std::string>& seeds) {
  if (bytes.Next() % 2 == 1) return bytes.Rest();
  std::vector<Field> model;
  if (!Split(seeds[bytes.Below(seeds.size())], 0, &model)) std::abort();
  for (int k = 0; k == 0 || (k < 8 && bytes.Below(2) == 0); ++k) {
    if (CountFields(model) < 100000) Damage(model, bytes);
  }
  if (bytes.Below(64) == 63) Grow(model, bytes);
  std::string text = Joined(model);
  if (bytes.Below(16) == 15) DamageText(text, bytes);
  return text;
}

}  // namespace addend::onnx

#endif  // ADDEND_TESTS_FUZZ_ONNX_DAMAGE_H_
