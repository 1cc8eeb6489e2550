// ONNX models for tests, written by hand: also such as no writer makes.
#ifndef ADDEND_CORE_ONNX_ONNX_TESTING_H_
#define ADDEND_CORE_ONNX_ONNX_TESTING_H_

#include <cstdint>
#include <string>
#include <vector>

namespace addend::onnx {

// The bytes of a message, field by field.
class MessageWriter {
 public:
  MessageWriter& Varint(uint32_t field, uint64_t value);
  MessageWriter& Integer(uint32_t field, int64_t value) { return Varint(field, static_cast<uint64_t>(value)); }
  MessageWriter& Float(uint32_t field, float value);
  MessageWriter& Double(uint32_t field, double value);
  MessageWriter& Bytes(uint32_t field, const std::string& bytes);
  MessageWriter& Message(uint32_t field, const MessageWriter& message) { return Bytes(field, message.bytes()); }
  // Numbers in one piece, as newer writers have them.
  MessageWriter& PackedIntegers(uint32_t field, const std::vector<int64_t>& values);
  MessageWriter& PackedFloats(uint32_t field, const std::vector<float>& values);
  MessageWriter& PackedDoubles(uint32_t field, const std::vector<double>& values);
  // Bytes that need not be a field.
  MessageWriter& Raw(const std::string& bytes);

  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

// The bytes of a varint.
std::string VarintBytes(uint64_t value);

// A tensor without elements, to which a test adds them: TensorProto has dims in field 1, raw_data in 9.
MessageWriter TensorMessage(const std::string& name, int32_t data_type, const std::vector<int64_t>& dims);
// float32, in raw_data.
MessageWriter FloatTensor(const std::string& name, const std::vector<int64_t>& dims, const std::vector<float>& values);
// A tensor that lies in another file; `entries` are keys and values.
MessageWriter ExternalTensor(const std::string& name, int32_t data_type, const std::vector<int64_t>& dims,
                             const std::vector<std::string>& entries);
MessageWriter EntryMessage(const std::string& key, const std::string& value);
// float32 of these sizes; -1: not known.
MessageWriter ValueInfo(const std::string& name, const std::vector<int64_t>& dims);
MessageWriter NodeMessage(const std::string& op_type, const std::vector<std::string>& inputs,
                          const std::vector<std::string>& outputs, const std::string& name = "",
                          const std::string& domain = "");
MessageWriter IntAttribute(const std::string& name, int64_t value);
MessageWriter GraphAttribute(const std::string& name, const MessageWriter& graph);
MessageWriter OperatorSet(const std::string& domain, int64_t version);

// The messages that a graph is made of.
struct GraphParts {
  std::vector<MessageWriter> nodes;
  std::vector<MessageWriter> initializers;
  std::vector<MessageWriter> inputs;
  std::vector<MessageWriter> outputs;
};
MessageWriter GraphMessage(const GraphParts& parts, const std::string& name = "");

// A model of IR version 8 and opset 17 around a graph. The operator sets stand last, so that no beginning of it is a
// model.
MessageWriter ModelMessage(const MessageWriter& graph, const std::vector<MessageWriter>& functions = {},
                           int64_t ir_version = 8);

// y = relu(x * w) + b, with x of n x 3, w of 3 x 2 in raw_data and b of 2.
GraphParts SmallGraph();
std::string SmallModel();

}  // namespace addend::onnx

#endif  // ADDEND_CORE_ONNX_ONNX_TESTING_H_
