// The model for Java: dev.addend.NativeModel.
#include <jni.h>

#include <vector>

#include "tests/native_model/native_model.h"

namespace {

// The object that hears of modules, and the thread's Java.
struct Hook {
  JNIEnv* env;
  jobject consumer;
  jmethodID accept;
};

void Enter(void* payload, const char* module_path) {
  const Hook& hook = *static_cast<const Hook*>(payload);
  // An exception of the hook is thrown when the model has run.
  if (hook.env->ExceptionCheck() == JNI_TRUE) return;
  const jstring path = hook.env->NewStringUTF(module_path);
  if (path == nullptr) return;
  hook.env->CallVoidMethod(hook.consumer, hook.accept, path);
  if (hook.env->ExceptionCheck() == JNI_FALSE) hook.env->DeleteLocalRef(path);
}

// The address of a tensor that was made; throws where there is none.
jlong Given(JNIEnv* env, void* tensor) {
  if (tensor == nullptr && env->ExceptionCheck() == JNI_FALSE) {
    env->ThrowNew(env->FindClass("java/lang/IllegalStateException"), native_error());
  }
  return reinterpret_cast<jlong>(tensor);
}

const native_model* Model(jlong address) { return reinterpret_cast<const native_model*>(address); }

}  // namespace

extern "C" {

JNIEXPORT jlong JNICALL Java_dev_addend_NativeModel_tensor(JNIEnv* env, jclass, jfloatArray numbers, jlongArray sizes) {
  std::vector<jfloat> own_numbers(static_cast<size_t>(env->GetArrayLength(numbers)));
  env->GetFloatArrayRegion(numbers, 0, static_cast<jsize>(own_numbers.size()), own_numbers.data());
  std::vector<int64_t> own_sizes(static_cast<size_t>(env->GetArrayLength(sizes)));
  env->GetLongArrayRegion(sizes, 0, static_cast<jsize>(own_sizes.size()), reinterpret_cast<jlong*>(own_sizes.data()));
  return Given(env, native_tensor(own_numbers.data(), own_sizes.data(), own_sizes.size()));
}

JNIEXPORT void JNICALL Java_dev_addend_NativeModel_releaseTensor(JNIEnv*, jclass, jlong tensor) {
  native_tensor_release(reinterpret_cast<void*>(tensor));
}

JNIEXPORT jlong JNICALL Java_dev_addend_NativeModel_create(JNIEnv*, jclass) {
  return reinterpret_cast<jlong>(native_model_create());
}

JNIEXPORT void JNICALL Java_dev_addend_NativeModel_release(JNIEnv*, jclass, jlong model) {
  native_model_release(reinterpret_cast<native_model*>(model));
}

JNIEXPORT jint JNICALL Java_dev_addend_NativeModel_numTensors(JNIEnv*, jclass, jlong model) {
  return static_cast<jint>(native_model_num_tensors(Model(model)));
}

JNIEXPORT jstring JNICALL Java_dev_addend_NativeModel_tensorName(JNIEnv* env, jclass, jlong model, jint index) {
  return env->NewStringUTF(native_model_tensor_name(Model(model), static_cast<size_t>(index)));
}

JNIEXPORT jboolean JNICALL Java_dev_addend_NativeModel_isLearned(JNIEnv*, jclass, jlong model, jint index) {
  return native_model_tensor_is_learned(Model(model), static_cast<size_t>(index)) != 0 ? JNI_TRUE : JNI_FALSE;
}

JNIEXPORT jlong JNICALL Java_dev_addend_NativeModel_tensorAt(JNIEnv*, jclass, jlong model, jint index) {
  return reinterpret_cast<jlong>(native_model_tensor(Model(model), static_cast<size_t>(index)));
}

JNIEXPORT jlong JNICALL Java_dev_addend_NativeModel_forward(JNIEnv* env, jclass, jlong model, jlong x, jobject hook) {
  const jclass type = env->GetObjectClass(hook);
  Hook heard = {env, hook, env->GetMethodID(type, "accept", "(Ljava/lang/Object;)V")};
  if (heard.accept == nullptr) return 0;
  void* const tensor = native_model_forward(Model(model), reinterpret_cast<const void*>(x), Enter, &heard);
  if (env->ExceptionCheck() == JNI_TRUE) {
    native_tensor_release(tensor);
    return 0;
  }
  return Given(env, tensor);
}

}  // extern "C"
