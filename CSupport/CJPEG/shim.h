// jpeglib.h needs these, and does not include them.
#include <stddef.h>
#include <stdio.h>

#include <jpeglib.h>
