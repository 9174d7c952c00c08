// Fuzzes the unpacking of zip archives: nothing is written outside of the folder, and nothing but files and folders is made.

#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tide_archive.h"

#define require(condition) ((condition) ? (void)0 : (fprintf(stderr, "line %d: %s\n", __LINE__, #condition), abort()))

/// Removes what is in a folder; there is nothing but folders and files.
static uint64_t folder_empty(int folder) {
    uint64_t files = 0;
    DIR *listed = fdopendir(dup(folder));
    require(listed);
    rewinddir(listed);
    for (struct dirent *entry; (entry = readdir(listed));) {
        const char *name = entry->d_name;
        struct stat status;
        if (name[0] == '.' && (!name[1] || (name[1] == '.' && !name[2]))) continue;
        require(fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) == 0);
        if (S_ISREG(status.st_mode)) {
            files++;
            require(unlinkat(folder, name, 0) == 0);
        } else {
            require(S_ISDIR(status.st_mode));
            int inner = openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
            require(inner >= 0);
            files += folder_empty(inner);
            close(inner);
            require(unlinkat(folder, name, AT_REMOVEDIR) == 0);
        }
    }
    closedir(listed);
    return files;
}

/// The folder that archives are unpacked into, within one in which nothing else may appear.
static int target_open(int *around) {
    static char path[] = "/tmp/tidemark-archive-XXXXXX";
    require(mkdtemp(path));
    *around = open(path, O_RDONLY | O_DIRECTORY);
    require(*around >= 0 && mkdirat(*around, "target", 0700) == 0);
    rmdir(path);
    return openat(*around, "target", O_RDONLY | O_DIRECTORY);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
    static int around, folder = -1;
    if (folder < 0) folder = target_open(&around);
    int source = memfd_create("archive", 0);
    require(source >= 0 && write(source, bytes, length) == (ssize_t)length && lseek(source, 0, SEEK_SET) == 0);
    uint64_t files = 0;
    tide_error error;
    tide_status status = tide_archive_unpack(source, folder, &files, &error);
    require(status == TIDE_OK || status == TIDE_REJECTED);
    close(source);
    uint64_t found = folder_empty(folder);
    // Of an archive that is refused, the file at fault is there as well.
    require(found == files || (status && found == files + 1));
    DIR *listed = fdopendir(dup(around));
    require(listed);
    rewinddir(listed);
    int entries = 0;
    while (readdir(listed)) entries++;
    closedir(listed);
    require(entries == 3);
    return 0;
}
