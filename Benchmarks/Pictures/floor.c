// The floor of scaling pictures: what libjpeg-turbo alone takes to decode JPEGs at the reduction that the core uses, and to encode as many pixels
// as the result has, with a thumbnail; nothing is filtered between. Pixels are picked, which no one would call scaling.
//
// usage: pictures-floor MAX QUALITY THUMBNAIL FILE...

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

typedef struct canvas {
    unsigned width, height;
    unsigned char *bytes;
} canvas;

static canvas decode(const unsigned char *bytes, size_t length, unsigned max) {
    struct jpeg_decompress_struct info;
    struct jpeg_error_mgr errors;
    info.err = jpeg_std_error(&errors);
    jpeg_create_decompress(&info);
    jpeg_mem_src(&info, bytes, length);
    jpeg_read_header(&info, TRUE);
    unsigned longest = info.image_width > info.image_height ? info.image_width : info.image_height;
    info.scale_denom = 8;
    for (info.scale_num = 1; info.scale_num < 8 && longest * info.scale_num / 8 < 2 * max;) info.scale_num *= 2;
    info.out_color_space = JCS_EXT_RGBX;
    jpeg_start_decompress(&info);
    double ratio = longest > max ? (double)longest * info.scale_num / 8 / max : 1;
    canvas made = {(unsigned)(info.output_width / ratio), (unsigned)(info.output_height / ratio), NULL};
    made.bytes = malloc((size_t)made.width * made.height * 4);
    unsigned char *row = malloc((size_t)info.output_width * 4);
    for (unsigned y = 0; y < info.output_height; y++) {
        jpeg_read_scanlines(&info, &row, 1);
        unsigned to = (unsigned)(y / ratio);
        if (to >= made.height) continue;
        for (unsigned x = 0; x < made.width; x++) memcpy(made.bytes + ((size_t)to * made.width + x) * 4, row + (size_t)(x * ratio) * 4, 4);
    }
    free(row);
    jpeg_finish_decompress(&info);
    jpeg_destroy_decompress(&info);
    return made;
}

static unsigned long encode(const canvas *from, unsigned step, int quality) {
    struct jpeg_compress_struct info;
    struct jpeg_error_mgr errors;
    info.err = jpeg_std_error(&errors);
    jpeg_create_compress(&info);
    unsigned char *bytes = NULL;
    unsigned long length = 0;
    jpeg_mem_dest(&info, &bytes, &length);
    info.image_width = from->width / step;
    info.image_height = from->height / step;
    info.input_components = 4;
    info.in_color_space = JCS_EXT_RGBX;
    jpeg_set_defaults(&info);
    jpeg_set_quality(&info, quality, TRUE);
    info.optimize_coding = TRUE;
    jpeg_start_compress(&info, TRUE);
    while (info.next_scanline < info.image_height) {
        unsigned char *row = from->bytes + (size_t)info.next_scanline * step * from->width * 4;
        jpeg_write_scanlines(&info, &row, 1);
    }
    jpeg_finish_compress(&info);
    jpeg_destroy_compress(&info);
    free(bytes);
    return length;
}

int main(int count, char **arguments) {
    if (count < 5) return 64;
    unsigned max = (unsigned)atoi(arguments[1]), thumbnail = (unsigned)atoi(arguments[3]);
    unsigned long sum = 0;
    for (int i = 4; i < count; i++) {
        FILE *file = fopen(arguments[i], "rb");
        if (!file) return 66;
        fseek(file, 0, SEEK_END);
        size_t length = (size_t)ftell(file);
        rewind(file);
        unsigned char *bytes = malloc(length);
        if (fread(bytes, 1, length, file) != length) return 66;
        fclose(file);
        canvas made = decode(bytes, length, max);
        unsigned longest = made.width > made.height ? made.width : made.height;
        sum += encode(&made, 1, atoi(arguments[2])) + encode(&made, longest > thumbnail ? longest / thumbnail : 1, atoi(arguments[2]));
        free(made.bytes);
        free(bytes);
    }
    printf("%lu\n", sum);
    return 0;
}
