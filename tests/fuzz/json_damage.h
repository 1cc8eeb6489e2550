// Damage to JSON documents: the same bytes of a fuzzer do the same damage.
#ifndef ADDEND_TESTS_FUZZ_JSON_DAMAGE_H_
#define ADDEND_TESTS_FUZZ_JSON_DAMAGE_H_

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>

#include "core/base/json.h"
#include "tests/fuzz/bytes.h"

namespace addend {

inline constexpr uint8_t kStop = 0xf0;

// An entry of the document, chosen by the bytes on the way down. A byte of `stop` or more ends the way.
inline Json* Choose(Json& document, Bytes& bytes, uint8_t stop = kStop) {
  Json* at = &document;
  while (at->is_structured() && !at->empty()) {
    const uint8_t step = bytes.Next();
    if (step >= stop) break;
    auto next = at->begin();
    std::advance(next, (step + size_t{256} * bytes.Next()) % at->size());
    at = &*next;
  }
  return at;
}

inline constexpr uint8_t kNumEdits = 16;

// Makes something hostile of an entry of the document; `edit`: below kNumEdits.
inline void Edit(Json& document, Json* entry, uint8_t edit, Bytes& bytes, uint8_t stop = kStop) {
  switch (edit) {
    case 0:
      *entry = -1;
      break;
    case 1:
      *entry = int64_t{1} << 31;
      break;
    case 2:
      *entry = std::numeric_limits<int64_t>::max();
      break;
    case 3:
      *entry = std::numeric_limits<int64_t>::min();
      break;
    case 4:
      *entry = std::numeric_limits<uint64_t>::max();
      break;
    case 5:
      *entry = bytes.Next();
      break;
    case 6:
      *entry = 0.5;
      break;
    case 7:
      *entry = nullptr;
      break;
    case 8:
      *entry = true;
      break;
    case 9:
      *entry = "";
      break;
    case 10:
      *entry = Json::array();
      break;
    case 11:
      *entry = Json::object();
      break;
    case 12:
      *entry = Json(*Choose(document, bytes, stop));
      break;
    case 13:
      if (entry->is_array() && !entry->empty()) entry->erase(entry->begin() + bytes.Next() % entry->size());
      break;
    case 14:
      if (entry->is_object() && !entry->empty()) entry->erase(entry->begin());
      break;
    default:
      if (entry->is_array() && !entry->empty()) entry->push_back(Json((*entry)[bytes.Next() % entry->size()]));
      break;
  }
}

}  // namespace addend

#endif  // ADDEND_TESTS_FUZZ_JSON_DAMAGE_H_
