// A library that other_libtorch_test loads under LibTorch's name.
extern "C" int addend_test_other_libtorch() { return 0; }
