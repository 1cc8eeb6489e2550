// Operators of ONNX that are refused whatever their inputs are.
#include "core/onnx/families.h"

namespace addend::onnx {
namespace {

constexpr char kTexts[] = "tensors of LibTorch hold no texts; turn texts into numbers before the model";
constexpr char kMaps[] = "values are tensors here, and no maps; give the model the numbers as tensors";
constexpr char kTraining[] = "it belongs to training; export the model for inference";

}  // namespace

void RegisterRefused(OperatorTable& table) {
  for (const char* name : {"RegexFullMatch", "StringConcat", "StringNormalizer", "StringSplit"}) {
    table.Refuse("", name, kTexts);
  }
  table.Refuse("", "ImageDecoder", "images are not decoded; give the model their pixels");
  table.Refuse("", "TfIdfVectorizer", "what it counts are texts and ids, which carry no parts; count before the model");
  for (const char* name : {"CastMap", "DictVectorizer"}) table.Refuse(kMachineLearningDomain, name, kMaps);
  table.Refuse(kMachineLearningDomain, "CategoryMapper", kTexts);
  for (const char* name : {"Adagrad", "Adam", "Gradient", "Momentum"}) {
    table.Refuse("ai.onnx.preview.training", name, kTraining);
  }
}

}  // namespace addend::onnx
