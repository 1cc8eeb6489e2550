// The families of operators, each with a file of its own.
#ifndef ADDEND_CORE_ONNX_FAMILIES_H_
#define ADDEND_CORE_ONNX_FAMILIES_H_

#include "core/onnx/operators.h"

namespace addend::onnx {

void RegisterActivations(OperatorTable& table);
void RegisterArithmetic(OperatorTable& table);
void RegisterAttention(OperatorTable& table);
void RegisterComparisons(OperatorTable& table);
void RegisterConstants(OperatorTable& table);
void RegisterControlFlow(OperatorTable& table);
void RegisterConvolutions(OperatorTable& table);
void RegisterFeatures(OperatorTable& table);
void RegisterIndexing(OperatorTable& table);
void RegisterLinearModels(OperatorTable& table);
void RegisterLosses(OperatorTable& table);
void RegisterMatrices(OperatorTable& table);
void RegisterMicrosoft(OperatorTable& table);
void RegisterMicrosoftQuantized(OperatorTable& table);
void RegisterNormalizations(OperatorTable& table);
void RegisterPools(OperatorTable& table);
void RegisterQuantized(OperatorTable& table);
void RegisterRandom(OperatorTable& table);
void RegisterRecurrent(OperatorTable& table);
void RegisterReductions(OperatorTable& table);
void RegisterRefused(OperatorTable& table);
void RegisterResampling(OperatorTable& table);
void RegisterSequences(OperatorTable& table);
void RegisterShapes(OperatorTable& table);
void RegisterSignal(OperatorTable& table);
void RegisterTrees(OperatorTable& table);
void RegisterVision(OperatorTable& table);

}  // namespace addend::onnx

#endif  // ADDEND_CORE_ONNX_FAMILIES_H_
