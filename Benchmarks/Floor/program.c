/// What every measuring program does the same way: its command line, its clock, its report, and ending with a message.

#define _GNU_SOURCE
#include "floor.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

void floor_fail(int code, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "%s: ", program_invocation_short_name);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    if (code != 0) fprintf(stderr, ": %s", strerror(code));
    fputc('\n', stderr);
    exit(1);
}

double floor_clock(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

void floor_report(const char *name, double seconds, uint64_t rows, uint64_t bytes) {
    printf("%s %.6f %" PRIu64 " %" PRIu64 "\n", name, seconds, rows, bytes);
    fflush(stdout);
}

void *floor_allocate(size_t bytes) {
    void *memory = malloc(bytes > 0 ? bytes : 1);
    if (memory == NULL) floor_fail(0, "no memory for %zu bytes", bytes);
    return memory;
}

void *floor_allocate_touched(size_t bytes) {
    void *memory = floor_allocate(bytes);
    memset(memory, 0xa5, bytes);
    return memory;
}

void floor_make_folder(const char *path) {
    if (mkdir(path, 0755) != 0 && errno != EEXIST) floor_fail(errno, "%s", path);
}

void floor_make_fan(const char *path) {
    char folder[4096];
    floor_make_folder(path);
    for (unsigned index = 0; index < 256; index++) {
        snprintf(folder, sizeof(folder), "%s/%02x", path, index);
        floor_make_folder(folder);
    }
}

static uint64_t parse_count(const char *text, const char *option) {
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    bool is_number = errno == 0 && *end == 0 && end != text && *text != '-';
    if (!is_number) floor_fail(0, "--%s takes a whole number, not “%s”", option, text);
    return value;
}

int floor_run(int count, char **arguments, const char *usage, const floor_subcommand *subcommands, size_t subcommand_count) {
    static const struct option options[] = {
        {"records", required_argument, NULL, 'r'},    {"page-size", required_argument, NULL, 'p'},
        {"batch", required_argument, NULL, 'b'},      {"cache", required_argument, NULL, 'c'},
        {"checkpoint", required_argument, NULL, 'k'}, {"seed", required_argument, NULL, 's'},
        {"threads", required_argument, NULL, 't'},    {"direct", required_argument, NULL, 'd'},
        {"schema", required_argument, NULL, 'm'},     {"sorted", no_argument, NULL, 'o'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    const floor_subcommand *chosen = NULL;
    for (size_t index = 0; count > 1 && index < subcommand_count; index++) {
        if (strcmp(arguments[1], subcommands[index].name) == 0) chosen = &subcommands[index];
    }
    if (chosen == NULL) {
        bool asked = count > 1 && strcmp(arguments[1], "--help") == 0;
        fputs(usage, asked ? stdout : stderr);
        return asked ? 0 : 2;
    }
    floor_options given = chosen->defaults;
    optind = 2;
    for (int option, index = 0; (option = getopt_long(count, arguments, "", options, &index)) != -1;) {
        switch (option) {
        case 'r': given.records = parse_count(optarg, "records"); break;
        case 'p': given.page_size = parse_count(optarg, "page-size"); break;
        case 'b': given.batch = parse_count(optarg, "batch"); break;
        case 'c': given.cache = parse_count(optarg, "cache"); break;
        case 'k': given.checkpoint = parse_count(optarg, "checkpoint"); break;
        case 's': given.seed = parse_count(optarg, "seed"); break;
        case 't': given.threads = parse_count(optarg, "threads"); break;
        case 'd': given.direct = parse_count(optarg, "direct") != 0; break;
        case 'm': given.schema = optarg; break;
        case 'o': given.sorted = true; break;
        case 'h': fputs(usage, stdout); return 0;
        default: fputs(usage, stderr); return 2;
        }
    }
    bool wrong_batch = chosen->defaults.batch != 0 && given.batch == 0;
    if (optind + chosen->paths != count || (chosen->needs_records && given.records == 0) || given.threads > 2 || wrong_batch) {
        fputs(usage, stderr);
        return 2;
    }
    given.source = arguments[optind];
    given.path = arguments[count - 1];
    chosen->run(&given);
    return 0;
}
