// Goal: a zip archive is unpacked as tide_archive.h says, and what breaks its rules ends the unpacking with a reason.
// Method: archives that libarchive writes, some changed by hand, are unpacked into a folder, and what is there is compared.

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "manifest_reading.h"
#include "tide_archive.h"

static char around[] = "/tmp/tidemark-unpacking-XXXXXX";

typedef struct member {
    const char *name, *text;
    /// 0 stands for a file.
    mode_t kind;
} member;

static uint8_t bytes[1 << 20];

static size_t archive_write(const member *members, int count) {
    size_t length;
    struct archive *archive = archive_write_new();
    check(archive_write_set_format_zip(archive) == ARCHIVE_OK && archive_write_open_memory(archive, bytes, sizeof bytes, &length) == ARCHIVE_OK,
        "zip");
    for (int i = 0; i < count; i++) {
        const member *it = &members[i];
        struct archive_entry *entry = archive_entry_new();
        archive_entry_set_pathname_utf8(entry, it->name);
        archive_entry_set_filetype(entry, it->kind ? it->kind : AE_IFREG);
        archive_entry_set_perm(entry, 0777);
        archive_entry_set_mtime(entry, 1700000000, 0);
        if (it->kind == AE_IFLNK) archive_entry_set_symlink(entry, it->text);
        if (!it->kind) archive_entry_set_size(entry, (la_int64_t)strlen(it->text));
        check(archive_write_header(archive, entry) == ARCHIVE_OK, "%s", archive_error_string(archive));
        if (!it->kind) check(archive_write_data(archive, it->text, strlen(it->text)) == (la_ssize_t)strlen(it->text), "%s", it->name);
        archive_entry_free(entry);
    }
    check(archive_write_close(archive) == ARCHIVE_OK, "zip");
    archive_write_free(archive);
    return length;
}

static void folder_remove(void) {
    char command[100];
    snprintf(command, sizeof command, "rm -rf %s/target", around);
    check(system(command) == 0, "%s", command);
}

/// Unpacks into a folder that is made for it, and says what came of it.
static tide_text unpack(int source) {
    char path[100];
    tide_text out = {0};
    tide_error error = {0};
    uint64_t files;
    folder_remove();
    snprintf(path, sizeof path, "%s/target", around);
    check(mkdir(path, 0700) == 0, "%s", path);
    int folder = open(path, O_RDONLY | O_DIRECTORY);
    tide_status status = tide_archive_unpack(source, folder, &files, &error);
    close(folder);
    close(source);
    if (status) error_write(&out, status, &error);
    else tide_text_format(&out, "%llu files\n", (unsigned long long)files);
    return out;
}

static void expect_unpacked(int line, int source, const char *expected) {
    tide_text found = unpack(source);
    expect_text(__FILE__, line, found.bytes, expected);
    tide_text_free(&found);
}

#define MEMBERS(expected, ...) \
    expect_unpacked(__LINE__, source_of(bytes, archive_write((member[]){__VA_ARGS__}, sizeof((member[]){__VA_ARGS__}) / sizeof(member))), expected)

static void expect_file(const char *name, const char *expected) {
    char path[300], text[100];
    struct stat status;
    snprintf(path, sizeof path, "%s/target/%s", around, name);
    check(lstat(path, &status) == 0 && S_ISREG(status.st_mode) && (status.st_mode & 0777) == 0600, "%s: %o", path, status.st_mode);
    check(status.st_mtime == 1700000000, "%lld", (long long)status.st_mtime);
    FILE *file = fopen(path, "rb");
    check(file, "%s", path);
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    fclose(file);
    check(!strcmp(text, expected), "%s: %s", path, text);
}

static bool is_there(const char *name) {
    char path[300];
    struct stat status;
    snprintf(path, sizeof path, "%s/%s", around, name);
    return lstat(path, &status) == 0;
}

static void test_files(void) {
    MEMBERS("4 files\n", {"a.txt", "one", 0}, {"sub/", "", AE_IFDIR}, {"sub/./deep//b.txt", "two", 0}, {"caf\u00e9.txt", "", 0},
            {"..c/d..", "three", 0});
    expect_file("a.txt", "one");
    expect_file("sub/deep/b.txt", "two");
    expect_file("caf\u00e9.txt", "");
    expect_file("..c/d..", "three");
    // Links and empty folders are passed over.
    MEMBERS("1 files\n", {"link", "/etc/passwd", AE_IFLNK}, {"empty/", "", AE_IFDIR}, {"a", "x", 0});
    check(!is_there("target/link") && !is_there("target/empty"), "a link");
    MEMBERS("0 files\n", {"empty/", "", AE_IFDIR});
}

static void test_rules(void) {
    MEMBERS("assetOutsideRoot: the zip archive names a file outside of itself: /a\n", {"/a", "x", 0});
    MEMBERS("assetOutsideRoot: the zip archive names a file outside of itself: ../a\n", {"b", "x", 0}, {"../a", "x", 0});
    MEMBERS("assetOutsideRoot: the zip archive names a file outside of itself: a/../../b\n", {"a/../../b", "x", 0});
    MEMBERS("assetOutsideRoot: the zip archive names a file outside of itself: a/..\n", {"a/..", "x", 0});
    check(!is_there("a") && !is_there("b"), "a file outside");
    MEMBERS("malformed: the zip archive's file a cannot be unpacked: it is there twice\n", {"a", "x", 0}, {"a", "y", 0});
    expect_file("a", "x");
    MEMBERS("malformed: the zip archive's file a/b cannot be unpacked: Not a directory\n", {"a", "x", 0}, {"a/b", "y", 0});
    MEMBERS("malformed: the zip archive's file a cannot be unpacked: it is there twice\n", {"a/b", "x", 0}, {"a", "y", 0});
    char name[5000], expected[400];
    memset(name, 'n', sizeof name);
    name[4096] = 0;
    MEMBERS("malformed: the zip archive has a file without a name that can be read\n", {name, "x", 0});
    name[300] = 0;
    snprintf(expected, sizeof expected, "malformed: the zip archive's file %s cannot be unpacked: %s\n", name, strerror(ENAMETOOLONG));
    MEMBERS(expected, {name, "x", 0});
    // The mark of encryption, in the file's header and in the directory at the end.
    size_t length = archive_write(&(member){"a", "text", 0}, 1);
    for (size_t i = 0; i + 10 < length; i++) {
        if (!memcmp(bytes + i, "PK\3\4", 4)) bytes[i + 6] |= 1;
        if (!memcmp(bytes + i, "PK\1\2", 4)) bytes[i + 8] |= 1;
    }
    expect_unpacked(__LINE__, source_of(bytes, length), "malformed: the zip archive is encrypted (a); unpack it first\n");
}

static void test_damage(void) {
    char text[4001] = {0};
    for (int i = 0; i < 4000; i++) text[i] = (char)('a' + i * i % 23);
    size_t length = archive_write((member[]){{"a", text, 0}, {"b", text, 0}}, 2);
    static const char damaged[] = "malformed: the zip archive is damaged";
    for (size_t kept = 0; kept < length; kept += 101) {
        tide_text found = unpack(source_of(bytes, kept));
        // At the end of an archive is its directory, which is no file's.
        bool is_whole = !strcmp(found.bytes, "2 files\n");
        check(!strncmp(found.bytes, damaged, sizeof damaged - 1) || (is_whole && kept > length - 200), "%zu bytes: %s", kept, found.bytes);
        tide_text_free(&found);
    }
    // Within the content of the first file.
    bytes[100] ^= 0x55;
    tide_text found = unpack(source_of(bytes, length));
    check(!strncmp(found.bytes, "malformed: the zip archive is damaged at a: ", 44), "%s", found.bytes);
    tide_text_free(&found);
    expect_unpacked(__LINE__, source_of("x", 1), "malformed: the zip archive is damaged: Unrecognized archive format\n");
    expect_unpacked(__LINE__, source_of("", 0), "malformed: the zip archive is damaged: Unrecognized archive format\n");
}

/// A failed read or write is told as an error of the system, and not as damage of the archive.
static void test_system_errors(void) {
    char expected[200];
    snprintf(expected, sizeof expected, "status %d: cannot read the archive: %s\n", TIDE_IO_ERROR, strerror(EISDIR));
    expect_unpacked(__LINE__, open("/tmp", O_RDONLY | O_DIRECTORY), expected);
    size_t length = archive_write(&(member){"a", "text", 0}, 1);
    snprintf(expected, sizeof expected, "status %d: cannot read the archive: %s\n", TIDE_IO_ERROR, strerror(EAGAIN));
    for (size_t first = 0; first < 40; first += 13) expect_unpacked(__LINE__, source_of_parts((const char *)bytes, length, first, false), expected);

    struct rlimit before, less;
    check(getrlimit(RLIMIT_FSIZE, &before) == 0, "the limit of files");
    less = before;
    less.rlim_cur = 2;
    int source = source_of(bytes, length);
    signal(SIGXFSZ, SIG_IGN);
    check(setrlimit(RLIMIT_FSIZE, &less) == 0, "the limit of files");
    snprintf(expected, sizeof expected, "status %d: cannot write the unpacked files: %s\n", TIDE_IO_ERROR, strerror(EFBIG));
    expect_unpacked(__LINE__, source, expected);
    check(setrlimit(RLIMIT_FSIZE, &before) == 0, "the limit of files");
}

/// Makes the end of an archive: a directory of so many entries without names, 64-bit places if `is_large`, and the end's own record, which says that
/// there are no entries. `shift` is how far the end says the directory is from its place, and `length` gets the length.
static uint8_t *directory_make(uint32_t entries, bool is_large, uint32_t shift, size_t *length) {
    uint32_t size = entries * 46;
    uint8_t *made = calloc(1, size + 56 + 20 + 22);
    check(made, "memory");
    for (uint32_t i = 0; i < entries; i++) memcpy(made + (size_t)i * 46, "PK\1\2", 4);
    uint8_t *end = made + size;
    uint64_t wide_size = size - shift, wide_place = shift;
    if (is_large) {
        uint64_t place = size;
        memcpy(end, "PK\6\6", 4);
        memcpy(end + 40, &wide_size, 8);
        memcpy(end + 48, &wide_place, 8);
        memcpy(end + 56, "PK\6\7", 4);
        memcpy(end + 64, &place, 8);
        end += 76;
    }
    memcpy(end, "PK\5\6", 4);
    if (is_large) memset(end + 12, 0xff, 8);
    else memcpy(end + 12, &wide_size, 4), memcpy(end + 16, &wide_place, 4);
    *length = (size_t)(end + 22 - made);
    return made;
}

/// An archive whose directory has too many entries is refused before libarchive reads the directory, whatever the end says of their number.
static void test_entry_limit(void) {
    static const char refused[] = "tooLong: the zip archive has more than 400000 entries; unpack it first\n";
    for (int is_large = 0; is_large < 2; is_large++) {
        for (uint32_t shift = 0; shift <= 46; shift += 46) {
            size_t length;
            uint8_t *made = directory_make(400001 + shift / 46, is_large, shift, &length);
            expect_unpacked(__LINE__, source_of(made, length), refused);
            free(made);
        }
        // The directory is not where its length says, but at the place that the end names.
        size_t length;
        uint8_t *made = directory_make(400002, is_large, 1, &length);
        uint64_t place = 46;
        memcpy(made + length - (is_large ? 22 + 20 + 8 : 6), &place, is_large ? 8 : 4);
        expect_unpacked(__LINE__, source_of(made, length), refused);
        free(made);
        made = directory_make(400000, is_large, 0, &length);
        tide_text found = unpack(source_of(made, length));
        check(strcmp(found.bytes, refused) != 0, "%s", found.bytes);
        tide_text_free(&found);
        free(made);
    }
}

int main(void) {
    check(mkdtemp(around), "%s", around);
    test_files();
    test_rules();
    test_damage();
    test_entry_limit();
    test_system_errors();
    folder_remove();
    rmdir(around);
    return tests_end("archive_test");
}
