// Scales pictures by the core, as an import's worker does.
//
// usage: pictures-core MAX QUALITY THUMBNAIL FILE... (with TIDEMARK_OUT=DIRECTORY the results are written there)

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tide_picture.h"

static void file_write(const char *folder, int number, const char *kind, const tide_picture_file *file) {
    char path[1024];
    snprintf(path, sizeof path, "%s/%d%s.%s", folder, number, kind, tide_media_extension(file->media));
    FILE *out = fopen(path, "wb");
    if (!out || fwrite(file->bytes, 1, file->length, out) != file->length) exit(73);
    fclose(out);
}

int main(int count, char **arguments) {
    if (count < 5) return 64;
    tide_picture_options options = {
        .max_pixel_size = (uint32_t)atoi(arguments[1]), .quality = (uint32_t)atoi(arguments[2]),
        .thumbnail_pixel_size = (uint32_t)atoi(arguments[3])};
    const char *folder = getenv("TIDEMARK_OUT");
    size_t sum = 0;
    for (int i = 4; i < count; i++) {
        int descriptor = open(arguments[i], O_RDONLY);
        struct stat status;
        if (descriptor < 0 || fstat(descriptor, &status) != 0) return 66;
        tide_picture picture;
        tide_error error;
        tide_bytes bytes = {.descriptor = descriptor, .size = (uint64_t)status.st_size};
        if (tide_picture_create(bytes, &options, &picture, &error)) {
            fprintf(stderr, "%s: %s\n", arguments[i], error.message);
            return 65;
        }
        close(descriptor);
        sum += picture.image.length + picture.thumbnail.length;
        if (folder) {
            file_write(folder, i, "", &picture.image);
            file_write(folder, i, "-thumbnail", &picture.thumbnail);
        }
        tide_picture_destroy(&picture);
    }
    printf("%zu\n", sum);
    return 0;
}
