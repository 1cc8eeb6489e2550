// Canonical JSON (RFC 8785): one text for each JSON value, so that a digest of the text is one of the value.
//
// Objects have their keys in the order of UTF-16 code units, nothing stands between tokens, texts escape nothing but
// what they have to, and a number is the shortest decimal that reads back as the same double, as ECMAScript writes it.
#ifndef ADDEND_CORE_AUDIT_CANONICAL_JSON_H_
#define ADDEND_CORE_AUDIT_CANONICAL_JSON_H_

#include <string>

#include "core/base/json.h"
#include "core/base/read_json.h"

namespace addend {

// The canonical text of a value. Throws InvalidArgument for texts that are not UTF-8, for numbers that are not finite,
// for integers that no double holds exactly, and for values that are nested more than kMostNested deep.
std::string CanonicalJson(const Json& value);

// SHA-256 of the canonical text of an object without one of its keys: the key that holds this digest.
std::string Sha256Without(Json document, const std::string& key);

// A finite number as ECMAScript writes it: "0", "0.1", "1e-7", "123456789012345680000", "1e+21". A zero has no sign.
std::string CanonicalNumber(double number);

// A number as records hold it: JSON has no word for what is not finite, so these are the texts "NaN", "Infinity" and
// "-Infinity".
Json RecordedNumber(double number);
// The number again. Throws InvalidArgument for anything else.
double NumberOf(const Json& recorded);

}  // namespace addend

#endif  // ADDEND_CORE_AUDIT_CANONICAL_JSON_H_
