/// All files of a folder.

#define _GNU_SOURCE
#include "floor.h"

#include <errno.h>
#include <ftw.h>
#include <stdlib.h>
#include <string.h>

/// `nftw` takes no context.
static floor_files listed;

static int list_file(const char *path, const struct stat *status, int kind, struct FTW *where) {
    (void)status, (void)where;
    if (kind == FTW_DNR || kind == FTW_NS) floor_fail(errno, "%s", path);
    if (kind != FTW_F) return 0;
    if (listed.count == listed.capacity) {
        listed.capacity = 2 * listed.capacity + 1024;
        listed.paths = realloc(listed.paths, listed.capacity * sizeof(char *));
        if (listed.paths == NULL) floor_fail(0, "no memory");
    }
    if ((listed.paths[listed.count++] = strdup(path)) == NULL) floor_fail(0, "no memory");
    return 0;
}

floor_files floor_files_list(const char *folder) {
    listed = (floor_files){0};
    if (nftw(folder, list_file, 32, FTW_PHYS) != 0) floor_fail(errno, "%s", folder);
    if (listed.count == 0) floor_fail(0, "no files in %s", folder);
    return listed;
}

void floor_files_free(floor_files *files) {
    for (size_t index = 0; index < files->count; index++) free(files->paths[index]);
    free(files->paths);
}
