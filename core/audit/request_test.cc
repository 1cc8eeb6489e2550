// The JSON of requests: digests and signed logs depend on every byte of it.
#include "core/audit/request.h"

#include <gtest/gtest.h>

#include <exception>
#include <string>
#include <variant>

#include "core/base/json.h"
#include "core/explain/request.h"
#include "core/explain/target.h"

namespace addend {
namespace {

AskedRequest Asked() {
  AskedRequest request;
  request.options.targets = {ParseTarget("3"), ParseTarget("0,1-2")};
  return request;
}

// The text of a request without its policy, whose keys policy_test knows.
std::string Written(const AskedRequest& request) {
  Json json = RequestJson(request);
  json["policy"] = nullptr;
  return Dump(json);
}

TEST(RequestJsonTest, TheBytesOfRecordsThatWereWritten) {
  AskedRequest request = Asked();
  EXPECT_EQ(Written(request),
            "{\"at\":null,\"each_example\":false,\"every_target\":false,\"inputs\":[],\"memory\":0,\"own_rules\":false,"
            "\"policy\":null,\"structured\":false,\"targets\":[\"3\",\"0,1-2\"]}");
  request.options.at = "layers.0";
  request.options.each_example = true;
  request.options.every_target = true;
  request.options.memory_bytes = int64_t{1} << 40;
  request.options.operators = true;
  EXPECT_EQ(
      Written(request),
      "{\"at\":\"layers.0\",\"each_example\":true,\"every_target\":true,\"inputs\":[],\"memory\":1099511627776,"
      "\"own_rules\":false,\"policy\":null,\"structured\":false,\"targets\":[\"3\",\"0,1-2\"],\"operators\":true}");
}

TEST(RequestJsonTest, WhatNumbersDoNotDependOnIsLeftOut) {
  AskedRequest request = Asked();
  request.options.direction = Direction::kBackward;
  request.options.everything = true;
  request.options.keep_references = true;
  request.options.learn_sizes = true;
  request.options.timeout = 3;
  request.options.verify_reference = true;
  EXPECT_EQ(Written(request), Written(Asked()));
}

// Also of an option that comes to the list later.
TEST(RequestJsonTest, EveryRecordedOptionIsReadAgain) {
  AskedRequest request = Asked();
  for (const RequestOption& option : RequestOptionTable()) {
    for (const char* value : {"true", "backward", "7"}) {
      try {
        SetRequestOption(request.options, option.key, value);
      } catch (const std::exception&) {  // a value of another type
      }
    }
  }
  const AskedRequest read = RequestOfJson(RequestJson(request), Json::array(), at::kCPU);
  const RequestOptions defaults;
  int recorded = 0;
  for (const RequestOption& option : RequestOptionTable()) {
    const bool never = option.record == RequestOption::Record::kNever;
    recorded += never ? 0 : 1;
    std::visit(
        [&](auto field) {
          EXPECT_FALSE(request.options.*field == defaults.*field) << option.key;
          EXPECT_TRUE(read.options.*field == (never ? defaults.*field : request.options.*field)) << option.key;
        },
        option.field);
  }
  EXPECT_GT(recorded, 3);
  EXPECT_EQ(RequestJson(read), RequestJson(request));
}

}  // namespace
}  // namespace addend
