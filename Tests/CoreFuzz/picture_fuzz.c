// Goal: no bytes make the reader of pictures overrun, hang, leak, or make a picture that it can't read itself.
//
// The first byte chooses the options. Larger pictures than a fuzzer has time for are left out by their headers, which the tests have.
// Seeds: `picture_test DIRECTORY`.

#include <stdlib.h>

#include "tide_picture.h"

#define require(condition) ((condition) ? (void)0 : abort())

enum { pixel_limit = 1 << 20 };

static bool is_large(const uint8_t *bytes, size_t length) {
    tide_image image;
    tide_status status = tide_image_probe((tide_bytes){.memory = bytes, .descriptor = -1, .size = length}, &image, NULL);
    return status || (uint64_t)image.width * image.height > pixel_limit;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
    if (length < 2) return 0;
    uint8_t choice = bytes[0];
    tide_picture_options options = {
        .max_pixel_size = choice & 1 ? 1 + (choice >> 2) : 0,
        .thumbnail_pixel_size = choice & 2 ? 1 + (choice >> 3) : 0,
        .quality = 1 + choice % 100,
        .keeps_position = choice & 4,
    };
    bytes++;
    length--;
    if (is_large(bytes, length)) return 0;
    tide_picture picture;
    tide_error error;
    tide_bytes source = {.memory = bytes, .descriptor = -1, .size = length};
    tide_status status = tide_picture_create(source, &options, &picture, &error);
    require(status == TIDE_OK || status == TIDE_REJECTED);
    if (status) return 0;
    tide_bytes made = {.memory = picture.image.bytes, .descriptor = -1, .size = picture.image.length};
    tide_picture again;
    require(tide_picture_create(made, &options, &again, &error) == TIDE_OK);
    require(again.image.width == picture.image.width && again.image.height == picture.image.height);
    tide_picture_destroy(&again);
    tide_picture_destroy(&picture);
    return 0;
}
