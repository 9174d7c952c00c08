#pragma once

// The settings of glibc's allocator, which Swift's module Glibc lacks.
#if defined(__linux__)
#include <malloc.h>
#endif
