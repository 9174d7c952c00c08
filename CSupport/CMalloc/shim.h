#pragma once

// How glibc's allocator is set; Swift's module of glibc leaves it out.
#if defined(__linux__)
#include <malloc.h>
#endif
