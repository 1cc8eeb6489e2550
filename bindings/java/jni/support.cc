#include "bindings/java/jni/support.h"

#include <cstring>
#include <limits>

namespace addend_jni {
namespace {

static_assert(sizeof(jlong) >= sizeof(void*), "a handle has to fit into a long");

struct Held {
  JavaVM* vm;
  jobject object;  // a global reference
};

// The JNIEnv of the calling thread, which is attached for as long as this lives if it is none of the JVM's.
class Attached {
 public:
  explicit Attached(JavaVM* vm) : vm_(vm) {
    if (vm->GetEnv(reinterpret_cast<void**>(&env_), JNI_VERSION_10) == JNI_EDETACHED) {
      attached_ = vm->AttachCurrentThreadAsDaemon(reinterpret_cast<void**>(&env_), nullptr) == JNI_OK;
    }
  }
  ~Attached() {
    if (attached_) vm_->DetachCurrentThread();
  }
  Attached(const Attached&) = delete;
  Attached& operator=(const Attached&) = delete;

  // nullptr in a JVM that is gone.
  JNIEnv* env() const { return env_; }

 private:
  JavaVM* vm_;
  JNIEnv* env_ = nullptr;
  bool attached_ = false;
};

jmethodID Method(JNIEnv* env, jobject object, const char* name, const char* signature) {
  const jclass type = env->GetObjectClass(object);
  const jmethodID method = env->GetMethodID(type, name, signature);
  env->DeleteLocalRef(type);
  return method;
}

}  // namespace

const char* Bytes::Read(JNIEnv* env, jbyteArray bytes) {
  if (!bytes) return nullptr;
  text_.resize(static_cast<size_t>(env->GetArrayLength(bytes)));
  env->GetByteArrayRegion(bytes, 0, static_cast<jsize>(text_.size()), reinterpret_cast<jbyte*>(&text_[0]));
  return text_.c_str();
}

const int64_t* Longs::Read(JNIEnv* env, jlongArray longs) {
  static_assert(sizeof(jlong) == sizeof(int64_t), "");
  if (!longs) return nullptr;
  values_.resize(static_cast<size_t>(env->GetArrayLength(longs)));
  env->GetLongArrayRegion(longs, 0, static_cast<jsize>(values_.size()), reinterpret_cast<jlong*>(values_.data()));
  return values_.data();
}

jbyteArray NewBytes(JNIEnv* env, const char* text) { return text ? NewBytes(env, text, std::strlen(text)) : nullptr; }

jbyteArray NewBytes(JNIEnv* env, const char* text, size_t size) {
  if (!text) return nullptr;
  if (size > static_cast<size_t>(std::numeric_limits<jsize>::max())) {
    const jclass error = env->FindClass("java/lang/OutOfMemoryError");
    if (error) env->ThrowNew(error, "the library gives more bytes than an array holds");
    return nullptr;
  }
  const jbyteArray bytes = env->NewByteArray(static_cast<jsize>(size));
  if (bytes) env->SetByteArrayRegion(bytes, 0, static_cast<jsize>(size), reinterpret_cast<const jbyte*>(text));
  return bytes;
}

jobject NewBuffer(JNIEnv* env, const void* data, const addend_tensor* tensor) {
  if (!data) return nullptr;
  jlong size = addend_tensor_dtype(tensor) / 256 / 8;
  for (size_t dim = 0; dim < addend_tensor_num_dims(tensor); ++dim) size *= addend_tensor_size(tensor, dim);
  return env->NewDirectByteBuffer(const_cast<void*>(data), size);
}

void SetHandle(JNIEnv* env, jlongArray out, const void* handle) {
  const jlong value = reinterpret_cast<jlong>(handle);
  env->SetLongArrayRegion(out, 0, 1, &value);
}

void SetInt(JNIEnv* env, jintArray out, jint value) { env->SetIntArrayRegion(out, 0, 1, &value); }

void SetDouble(JNIEnv* env, jdoubleArray out, jdouble value) { env->SetDoubleArrayRegion(out, 0, 1, &value); }

void* Hold(JNIEnv* env, jobject object) {
  if (!object) return nullptr;
  JavaVM* vm = nullptr;
  if (env->GetJavaVM(&vm) != JNI_OK) return nullptr;
  return new Held{vm, env->NewGlobalRef(object)};
}

void Release(void* payload) {
  if (!payload) return;
  Held* held = static_cast<Held*>(payload);
  {
    const Attached attached(held->vm);
    if (attached.env()) attached.env()->DeleteGlobalRef(held->object);
  }
  delete held;
}

// These objects catch what is thrown in them, so no exception is pending afterwards but for one of the JVM itself.

void Log(void* payload, int32_t level, const char* message) {
  const Held* held = static_cast<const Held*>(payload);
  const Attached attached(held->vm);
  JNIEnv* env = attached.env();
  if (!env || env->ExceptionCheck()) return;
  const jbyteArray text = NewBytes(env, message);
  if (!text) return;
  const jmethodID method = Method(env, held->object, "log", "(I[B)V");
  if (method) env->CallVoidMethod(held->object, method, static_cast<jint>(level), text);
  if (!env->ExceptionCheck()) env->DeleteLocalRef(text);
}

int32_t Progress(void* payload, const char* stage, int64_t done, int64_t total) {
  const Held* held = static_cast<const Held*>(payload);
  const Attached attached(held->vm);
  JNIEnv* env = attached.env();
  if (!env || env->ExceptionCheck()) return -1;
  const jbyteArray text = NewBytes(env, stage);
  if (!text) return -1;
  const jmethodID method = Method(env, held->object, "progress", "([BJJ)I");
  const jint answer =
      method ? env->CallIntMethod(held->object, method, text, static_cast<jlong>(done), static_cast<jlong>(total)) : -1;
  if (env->ExceptionCheck()) return -1;
  env->DeleteLocalRef(text);
  return answer;
}

int32_t Frames(void* payload, addend_frames* frames) {
  const Held* held = static_cast<const Held*>(payload);
  const Attached attached(held->vm);
  JNIEnv* env = attached.env();
  if (!env || env->ExceptionCheck()) return -1;
  const jmethodID method = Method(env, held->object, "frames", "(J)I");
  const jint answer = method ? env->CallIntMethod(held->object, method, reinterpret_cast<jlong>(frames)) : -1;
  return env->ExceptionCheck() ? -1 : answer;
}

}  // namespace addend_jni
