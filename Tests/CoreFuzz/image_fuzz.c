// Goal: no bytes make the probe or the EXIF reader overrun, hang or contradict themselves.
//
// clang -std=c17 -g -O1 -fsanitize=fuzzer,address,undefined, with tide_status.c, tide_image*.c, tide_exif.c and -lexif; seeds from
// `image_test DIRECTORY`.

#include <stdlib.h>
#include <string.h>

#include "tide_exif.h"
#include "tide_image.h"

#define require(condition) ((condition) ? (void)0 : abort())

static void exif_require(const uint8_t *block, size_t length) {
    tide_exif exif;
    tide_exif_read(block, length, &exif);
    require(exif.orientation >= 1 && exif.orientation <= 8);
    require(exif.latitude >= -90 && exif.latitude <= 90 && exif.longitude >= -180 && exif.longitude <= 180);
    // From the year 1 to 9999, give or take an offset
    require(exif.time >= -62136000000000000 && exif.time <= 253403000000000000);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
    tide_image image;
    tide_error error;
    tide_status status = tide_image_probe((tide_bytes){.memory = bytes, .descriptor = -1, .size = length}, &image, &error);
    require(status == TIDE_OK || (status == TIDE_REJECTED && error.reject == TIDE_REJECT_ASSET_TRUNCATED));
    if (image.exif_length) {
        require(image.exif_length <= length && image.exif_offset <= length - image.exif_length);
        const uint8_t *block = bytes + image.exif_offset;
        require(memcmp(block, "II", 2) == 0 || memcmp(block, "MM", 2) == 0);
        uint8_t *exact = malloc(image.exif_length);
        if (!exact) return 0;
        memcpy(exact, block, image.exif_length);
        exif_require(exact, image.exif_length);
        free(exact);
    }
    exif_require(bytes, length);
    return 0;
}
