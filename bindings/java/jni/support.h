// Functions and classes that the generated JNI functions use; bindings/swig/java.i says where.
#ifndef ADDEND_BINDINGS_JAVA_JNI_SUPPORT_H_
#define ADDEND_BINDINGS_JAVA_JNI_SUPPORT_H_

#include <jni.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "c_api/addend.h"

namespace addend_jni {

// A byte[] as C text, for the length of one call.
class Bytes {
 public:
  // nullptr for null.
  const char* Read(JNIEnv* env, jbyteArray bytes);

 private:
  std::string text_;
};

// A long[] as numbers, for the length of one call.
class Longs {
 public:
  // nullptr for null, whose size is 0.
  const int64_t* Read(JNIEnv* env, jlongArray longs);
  size_t size() const { return values_.size(); }

 private:
  std::vector<int64_t> values_;
};

// null for nullptr, and where Java has no memory left or no array is so long: an OutOfMemoryError is then pending.
jbyteArray NewBytes(JNIEnv* env, const char* text);
jbyteArray NewBytes(JNIEnv* env, const char* text, size_t size);

// The tensor's elements without copying; null where `data` is nullptr.
jobject NewBuffer(JNIEnv* env, const void* data, const addend_tensor* tensor);

// Fill in the first element of an array that stands for an out_ parameter.
void SetHandle(JNIEnv* env, jlongArray out, const void* handle);
void SetInt(JNIEnv* env, jintArray out, jint value);
void SetDouble(JNIEnv* env, jdoubleArray out, jdouble value);

// A payload that keeps a Java object alive until Release, an addend_release_fn for any thread; nullptr for null.
void* Hold(JNIEnv* env, jobject object);
void Release(void* payload);

// addend_log_fn, addend_progress_fn and addend_frames_fn, whose payloads hold a LogCallback, a ProgressCallback and a
// FramesCallback.
void Log(void* payload, int32_t level, const char* message);
int32_t Progress(void* payload, const char* stage, int64_t done, int64_t total);
int32_t Frames(void* payload, addend_frames* frames);

}  // namespace addend_jni

#endif  // ADDEND_BINDINGS_JAVA_JNI_SUPPORT_H_
