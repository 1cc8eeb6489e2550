// Does what its arguments say, in order, for the test of the stub:
//   load FILE     loads a library, as a host does
//   stub FILE     loads the stub
//   check         prints what addend_check_libtorch says
//   from FOLDER   prints what addend_load_libtorch says of the folder
//   loaded        prints what addend_libtorch_is_loaded says
//   config        prints what addend_show_config says
//   others        prints what functions without a status give, and what the implementation's own status says
//   threads N     checks on N threads at once
//   fork          checks in a child process
//   copy FROM TO  copies a file
//   allow         lets a LibTorch be tried that no implementation is for
#define _GNU_SOURCE
#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "c_api/addend.h"

static void* stub;

// A function of the stub, as dlsym gives it.
#define STUB(name) (*(__typeof__(&name))Symbol(#name))

static void* Symbol(const char* name) {
  void* symbol = dlsym(stub, name);
  if (symbol == NULL) {
    printf("no symbol %s\n", name);
    exit(1);
  }
  return symbol;
}

static void* Load(const char* path) {
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) {
    printf("%s\n", dlerror());
    exit(1);
  }
  return library;
}

static void Say(addend_status* status) {
  printf("%d %s", (int)STUB(addend_status_code)(status), STUB(addend_status_message)(status));
  printf("[%s]\n", STUB(addend_libtorch_version)());
  STUB(addend_status_release)(status);
  // Released twice, and read after that: still what it was.
  STUB(addend_status_release)(status);
  if (status != NULL && STUB(addend_status_code)(status) != ADDEND_FAILED_PRECONDITION) printf("released\n");
  fflush(stdout);
}

static void Check(void) { Say(STUB(addend_check_libtorch)()); }

static void Config(void) {
  const char* text = STUB(addend_show_config)();
  printf("%s\n", text);
  // The same text is kept once.
  if (STUB(addend_show_config)() != text) printf("another text\n");
  fflush(stdout);
}

static void Others(void) {
  addend_request* request = NULL;
  addend_status* status = STUB(addend_request_create)(&request);
  printf("%d %s\n", (int)STUB(addend_status_code)(status), STUB(addend_status_message)(status));
  printf("%s%s\n", STUB(addend_status_detail)(NULL), STUB(addend_status_message)(NULL));
  printf("%zu operators, release %s, ABI %d\n", STUB(addend_op_count)(), STUB(addend_version)(),
         (int)STUB(addend_abi_version)());
  STUB(addend_status_release)(NULL);
  fflush(stdout);
}

static void* CheckOnce(void* ready) {
  pthread_barrier_wait(ready);
  addend_status* status = STUB(addend_check_libtorch)();
  return (void*)(intptr_t)STUB(addend_status_code)(status);
}

static void Threads(int count) {
  pthread_t threads[64];
  pthread_barrier_t ready;
  pthread_barrier_init(&ready, NULL, (unsigned)count);
  for (int k = 0; k < count; ++k) pthread_create(&threads[k], NULL, CheckOnce, &ready);
  int failed = 0;
  for (int k = 0; k < count; ++k) {
    void* code = NULL;
    pthread_join(threads[k], &code);
    failed += code != NULL;
  }
  printf("%d of %d threads failed\n", failed, count);
}

static void Fork(void) {
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    Check();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (status != 0) printf("the child ended with %d\n", status);
}

static void Copy(const char* from, const char* to) {
  char command[8192];
  snprintf(command, sizeof(command), "cp '%s' '%s'", from, to);
  if (system(command) != 0) exit(1);
}

int main(int argc, char** argv) {
  for (int k = 1; k < argc; ++k) {
    if (strcmp(argv[k], "load") == 0)
      Load(argv[++k]);
    else if (strcmp(argv[k], "stub") == 0)
      stub = Load(argv[++k]);
    else if (strcmp(argv[k], "check") == 0)
      Check();
    else if (strcmp(argv[k], "from") == 0)
      Say(STUB(addend_load_libtorch)(argv[++k]));
    else if (strcmp(argv[k], "loaded") == 0)
      printf("loaded: %d\n", (int)STUB(addend_libtorch_is_loaded)());
    else if (strcmp(argv[k], "config") == 0)
      Config();
    else if (strcmp(argv[k], "others") == 0)
      Others();
    else if (strcmp(argv[k], "threads") == 0)
      Threads(atoi(argv[++k]));
    else if (strcmp(argv[k], "fork") == 0)
      Fork();
    else if (strcmp(argv[k], "allow") == 0)
      setenv("ADDEND_ALLOW_OTHER_LIBTORCH", "1", 1);
    else if (strcmp(argv[k], "copy") == 0)
      Copy(argv[k + 1], argv[k + 2]), k += 2;
    else
      return 2;
  }
  return 0;
}
