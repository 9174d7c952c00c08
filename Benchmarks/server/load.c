/// Loads a served cloud over HTTP/1.1: one thread, epoll, connections that are kept. What it measures it prints as one line of JSON.
///
/// With a rate, requests begin at planned moments, whether or not the ones before have been answered, and latencies count from there: a
/// server that stands still for a second has all that were planned in it wait. Without one, each connection asks again when it is answered.

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <netinet/tcp.h>
#include <openssl/evp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

static const char usage[] =
    "load MODE --port N --base PATH --token TEXT [OPTION]...\n"
    "  modify            creates records, --batch (200) in each request; as many as --records, if given\n"
    "  lookup            asks for one of the first --records records that modify has made\n"
    "  idle              opens --connections that ask once, stay for --seconds, and ask again\n"
    "  slow              has --connections of which a third sends nothing, a third headers and a third bodies, a byte a second,\n"
    "                    each at its own moment or, with --beat together, all at once\n"
    "  upload, download  --bytes (200000000) of assets of --size (10000000), in pieces of --piece (4000000)\n"
    "  --host 127.0.0.1  --base /database/1/CONTAINER/ENVIRONMENT/private  --own /tidemark/1/CONTAINER/ENVIRONMENT/private\n"
    "  --zone load  --connections 8  --seconds 10  --warm-up 1  --rate N (requests a second)  --seed 1  --first 0  --answer all|tags\n"
    "  --beat apart|together\n";

static struct {
    const char *mode, *host, *base, *own, *token, *zone, *answer, *beat;
    uint64_t port, connections, batch, records, first, seed, bytes, size, piece;
    double seconds, warm_up, rate;
} options = {.host = "127.0.0.1", .zone = "load", .answer = "all", .beat = "apart", .connections = 8, .batch = 200, .seed = 1, .bytes = 200000000,
             .size = 10000000, .piece = 4000000, .seconds = 10, .warm_up = 1};

static void fail(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fputs("load: ", stderr);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    exit(1);
}

static void *allocate(void *old, size_t bytes) {
    void *memory = realloc(old, bytes > 0 ? bytes : 1);
    if (memory == NULL) fail("no memory for %zu bytes", bytes);
    return memory;
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

// Text

typedef struct {
    char *bytes;
    size_t length, capacity;
} text;

static void reserve(text *it, size_t more) {
    if (it->length + more <= it->capacity) return;
    it->capacity = (it->length + more) * 2;
    it->bytes = allocate(it->bytes, it->capacity);
}

static void append(text *it, const char *format, ...) {
    va_list arguments;
    reserve(it, 1024);
    va_start(arguments, format);
    int length = vsnprintf(it->bytes + it->length, 1024, format, arguments);
    va_end(arguments);
    if (length < 0 || length >= 1024) fail("a text is too long: %s", format);
    it->length += (size_t)length;
}

// The data: records and assets come of a seed and their numbers

static uint64_t mix(uint64_t value) {
    value += 0x9e3779b97f4a7c15;
    value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9;
    value = (value ^ value >> 27) * 0x94d049bb133111eb;
    return value ^ value >> 31;
}

enum { name_length = 36 };

/// The name of a record, with nothing at its end.
static void write_name(uint64_t number, char *name) {
    char hex[40];
    uint64_t high = mix(options.seed << 40 ^ number), low = mix(high ^ number);
    snprintf(hex, sizeof(hex), "%08x-%04x-4%03x-8%03x-%012" PRIx64, (unsigned)(high >> 32), (unsigned)(high >> 16 & 0xffff),
             (unsigned)(high & 0xfff), (unsigned)(low >> 52 & 0xfff), low & 0xffffffffffff);
    memcpy(name, hex, name_length);
}

enum { time_length = 13 };

/// The time of a record, with nothing at its end: two records have the same by accident at the most.
static void write_time(uint64_t number, char *time) {
    char digits[24];
    snprintf(digits, sizeof(digits), "%" PRIu64, 1700000000000 + mix(options.seed << 40 ^ number) % 30000000000);
    memcpy(time, digits, time_length);
}

/// A request to create records, whose names and times are then written into it: 1.1 KB a record, as those of the journal are.
typedef struct {
    text body;
    size_t *names, *times;
} batch;

static void make_batch(batch *made, uint64_t seed) {
    static const char *words[] = {"the", "harbour", "lay", "quiet", "under", "grey", "light", "and", "gulls",
                                  "w\xc3\xa4hrend", "north", "r\xc3\xado"};
    text *body = &made->body;
    made->names = allocate(NULL, options.batch * sizeof(size_t));
    made->times = allocate(NULL, options.batch * sizeof(size_t));
    bool tags = strcmp(options.answer, "tags") == 0;
    append(body, "{\"zoneID\":{\"zoneName\":\"%s\"},\"atomic\":true,%s\"operations\":[", options.zone, tags ? "\"desiredKeys\":[]," : "");
    for (uint64_t index = 0; index < options.batch; index++) {
        uint64_t drawn = mix(seed * 1000003 + index);
        append(body, "%s{\"operationType\":\"create\",\"record\":{\"recordName\":\"", index ? "," : "");
        made->names[index] = body->length;
        append(body, "%36s\",\"recordType\":\"Destination\",\"fields\":{\"caption\":{\"value\":\"Place number %" PRIu64 "\",\"type\":\"STRING\"},",
               "",
               drawn % 100000);
        append(body, "\"createdAt\":{\"value\":");
        made->times[index] = body->length;
        append(body, "%13s,\"type\":\"TIMESTAMP\"},\"rating\":{\"value\":%d,\"type\":\"INT64\"},", "", (int)(drawn >> 20 & 7) % 6);
        append(body, "\"elevation\":{\"value\":%.1f,\"type\":\"DOUBLE\"},\"details\":{\"value\":\"", (double)(drawn >> 24 & 0xffff) / 10.0 + 0.5);
        size_t length = 200 + mix(drawn) % 1801, end = body->length + length;
        for (uint64_t at = drawn; body->length < end; at = mix(at)) append(body, "%s ", words[at % 12]);
        append(body, "\",\"type\":\"STRING\"}}}}");
    }
    append(body, "]}");
}

static void name_batch(batch *made, uint64_t first) {
    for (uint64_t index = 0; index < options.batch; index++) {
        write_name(first + index, made->body.bytes + made->names[index]);
        write_time(first + index, made->body.bytes + made->times[index]);
    }
}

typedef struct {
    uint8_t *bytes;
    char digest[65];
} asset;

static void write_digest(const void *bytes, size_t length, char *text) {
    uint8_t digest[32];
    if (EVP_Digest(bytes, length, digest, NULL, EVP_sha256(), NULL) != 1) fail("libcrypto has no SHA-256");
    for (int index = 0; index < 32; index++) sprintf(text + 2 * index, "%02x", digest[index]);
}

static asset *make_assets(uint64_t count) {
    asset *assets = allocate(NULL, count * sizeof(asset));
    for (uint64_t index = 0; index < count; index++) {
        assets[index].bytes = allocate(NULL, options.size + 8);
        uint64_t state = mix(options.seed ^ index << 32) | 1;
        for (uint64_t at = 0; at < options.size; at += 8) {
            state ^= state << 13, state ^= state >> 7, state ^= state << 17;
            memcpy(assets[index].bytes + at, &state, 8);
        }
        write_digest(assets[index].bytes, options.size, assets[index].digest);
    }
    return assets;
}

// Latencies

static struct {
    uint32_t *micros;
    uint64_t count, capacity;
} latencies;

static void note_latency(double seconds) {
    if (latencies.count == latencies.capacity) {
        latencies.capacity = latencies.capacity ? latencies.capacity * 2 : 1 << 16;
        latencies.micros = allocate(latencies.micros, latencies.capacity * sizeof(uint32_t));
    }
    double micros = seconds * 1e6;
    latencies.micros[latencies.count++] = micros < 0 ? 0 : micros > 4e9 ? 4000000000 : (uint32_t)micros;
}

static int compare(const void *left, const void *right) {
    uint32_t one = *(const uint32_t *)left, other = *(const uint32_t *)right;
    return (one > other) - (one < other);
}

static void print_latencies(void) {
    qsort(latencies.micros, latencies.count, sizeof(uint32_t), compare);
    static const struct {
        const char *name;
        double share;
    } quantiles[] = {{"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}, {"max", 1}};
    for (int index = 0; index < 4; index++) {
        if (latencies.count == 0) {
            printf(", \"%s\": null", quantiles[index].name);
            continue;
        }
        uint64_t at = (uint64_t)((double)latencies.count * quantiles[index].share);
        if (at >= latencies.count) at = latencies.count - 1;
        printf(", \"%s\": %.3f", quantiles[index].name, latencies.micros[at] / 1000.0);
    }
}

// Connections

typedef struct connection {
    int fd;
    uint64_t number;
    bool is_connecting, is_busy, has_answered;
    /// What is sent: headers, then a body that belongs to somebody else.
    text head;
    const char *body;
    size_t body_length, sent;
    /// What has come; `consumed` of a body in chunks is where the next chunk begins.
    text answer;
    size_t head_length, expected;
    bool is_chunked, has_head;
    int status;
    double planned, opened;
    /// What the mode keeps.
    batch batch;
    text scratch;
    uint64_t item, offset, piece_start, asked;
} connection;

static int poller;
static struct sockaddr_in address;
static connection *connections;
static struct {
    uint64_t answers, refused, broken, reopened, unasked;
    char first_refusal[400];
} counted;

static void watch(connection *it, uint32_t events, int operation) {
    struct epoll_event event = {.events = events, .data.ptr = it};
    if (epoll_ctl(poller, operation, it->fd, &event) != 0) fail("epoll: %s", strerror(errno));
}

static void open_connection(connection *it) {
    it->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (it->fd < 0) fail("socket: %s", strerror(errno));
    int yes = 1;
    setsockopt(it->fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
    if (connect(it->fd, (struct sockaddr *)&address, sizeof(address)) != 0 && errno != EINPROGRESS) fail("connect: %s", strerror(errno));
    it->is_connecting = true;
    it->has_answered = false;
    it->opened = now();
    watch(it, EPOLLIN | EPOLLOUT | EPOLLRDHUP, EPOLL_CTL_ADD);
}

static void close_connection(connection *it) {
    if (it->fd >= 0) close(it->fd);
    it->fd = -1;
    it->is_busy = it->is_connecting = false;
}

static void begin(connection *it, const char *method, const char *path, const char *more, const char *type, const char *body, size_t length) {
    it->head.length = 0;
    append(&it->head, "%s %s HTTP/1.1\r\nHost: %s:%" PRIu64 "\r\n", method, path, options.host, options.port);
    append(&it->head, "Authorization: Bearer %s\r\nX-Tidemark-Extensions: 1\r\n%s", options.token, more);
    if (type != NULL) append(&it->head, "Content-Type: %s\r\nContent-Length: %zu\r\n", type, length);
    append(&it->head, "\r\n");
    it->body = body;
    it->body_length = length;
    it->sent = it->answer.length = it->head_length = it->expected = 0;
    it->has_head = it->is_chunked = false;
    it->is_busy = true;
}

/// Whether all is sent; false as well when the connection has broken, as reading will tell.
static bool send_more(connection *it) {
    while (it->sent < it->head.length + it->body_length) {
        bool in_head = it->sent < it->head.length;
        const char *from = in_head ? it->head.bytes + it->sent : it->body + (it->sent - it->head.length);
        size_t count = in_head ? it->head.length - it->sent : it->head.length + it->body_length - it->sent;
        ssize_t sent = send(it->fd, from, count, MSG_NOSIGNAL | (in_head && it->body_length > 0 ? MSG_MORE : 0));
        if (sent < 0) {
            if (errno == EINTR) continue;
            return false;
        }
        it->sent += (size_t)sent;
    }
    return true;
}

static const char *header(connection *it, const char *name) {
    size_t length = strlen(name);
    const char *end = it->answer.bytes + it->head_length;
    for (const char *line = it->answer.bytes; line < end;) {
        const char *next = memchr(line, '\n', (size_t)(end - line));
        if (next == NULL) return NULL;
        if ((size_t)(next - line) > length && strncasecmp(line, name, length) == 0 && line[length] == ':') return line + length + 1;
        line = next + 1;
    }
    return NULL;
}

/// Takes a body apart that comes in chunks, in place: whether it is whole.
static bool join_chunks(connection *it) {
    char *bytes = it->answer.bytes;
    size_t from = it->head_length, to = it->head_length;
    while (true) {
        char *end = memmem(bytes + from, it->answer.length - from, "\r\n", 2);
        if (end == NULL) return false;
        size_t size = strtoul(bytes + from, NULL, 16), start = (size_t)(end - bytes) + 2;
        if (it->answer.length < start + size + 2) return false;
        if (size == 0) break;
        from = start + size + 2;
    }
    for (from = it->head_length;;) {
        char *end = memmem(bytes + from, it->answer.length - from, "\r\n", 2);
        size_t size = strtoul(bytes + from, NULL, 16), start = (size_t)(end - bytes) + 2;
        if (size == 0) break;
        memmove(bytes + to, bytes + start, size);
        to += size;
        from = start + size + 2;
    }
    it->answer.length = to;
    return true;
}

typedef enum { answer_partial, answer_whole, answer_broken } reading;

static reading read_more(connection *it) {
    while (true) {
        reserve(&it->answer, it->has_head && !it->is_chunked && it->expected > it->answer.length ? it->expected - it->answer.length + 1 : 16384);
        ssize_t count = recv(it->fd, it->answer.bytes + it->answer.length, it->answer.capacity - it->answer.length - 1, 0);
        if (count < 0 && errno == EINTR) continue;
        if (count < 0 && errno == EAGAIN) return answer_partial;
        if (count <= 0) return answer_broken;
        it->answer.length += (size_t)count;
        it->answer.bytes[it->answer.length] = 0;
        if (!it->has_head) {
            char *end = memmem(it->answer.bytes, it->answer.length, "\r\n\r\n", 4);
            if (end == NULL) continue;
            it->head_length = (size_t)(end - it->answer.bytes) + 4;
            it->has_head = true;
            if (sscanf(it->answer.bytes, "HTTP/1.%*d %d", &it->status) != 1) return answer_broken;
            const char *length = header(it, "Content-Length"), *coding = header(it, "Transfer-Encoding");
            it->is_chunked = coding != NULL && length == NULL;
            it->expected = it->head_length + (length != NULL ? strtoul(length, NULL, 10) : 0);
        }
        if (it->is_chunked ? join_chunks(it) : it->answer.length >= it->expected) return answer_whole;
    }
}

static bool answer_has(connection *it, const char *needle) {
    return memmem(it->answer.bytes + it->head_length, it->answer.length - it->head_length, needle, strlen(needle)) != NULL;
}

static bool is_well(connection *it) {
    bool well = (it->status == 200 || it->status == 206) && !(it->answer.length < 1 << 20 && answer_has(it, "serverErrorCode"));
    if (!well && counted.refused++ == 0) {
        size_t length = it->answer.length - it->head_length;
        snprintf(counted.first_refusal, sizeof(counted.first_refusal), "%d %.*s", it->status, (int)(length > 300 ? 300 : length),
                 it->answer.bytes + it->head_length);
    }
    return well;
}

// Modes: what a connection asks for next, and what is made of the answer

static uint64_t next_item, item_count;
static asset *assets;
static double measured_from;

static bool ask_modify(connection *it) {
    uint64_t first = next_item;
    if (options.records > 0 && first + options.batch > options.first + options.records) return false;
    next_item += options.batch;
    char path[600];
    snprintf(path, sizeof(path), "%s/records/modify", options.base);
    name_batch(&it->batch, first);
    begin(it, "POST", path, "", "application/json", it->batch.body.bytes, it->batch.body.length);
    return true;
}

static bool ask_lookup(connection *it) {
    char path[600], name[name_length + 1] = {0};
    uint64_t drawn = mix(mix(it->number) + it->asked++);
    write_name(options.first + drawn % (options.records ? options.records : 1), name);
    it->scratch.length = 0;
    append(&it->scratch, "{\"zoneID\":{\"zoneName\":\"%s\"},\"records\":[{\"recordName\":\"%s\"}]}", options.zone, name);
    snprintf(path, sizeof(path), "%s/records/lookup", options.base);
    begin(it, "POST", path, "", "application/json", it->scratch.bytes, it->scratch.length);
    return true;
}

/// The next piece of the connection's asset, or the first of another.
static bool take_piece(connection *it) {
    if (it->item == UINT64_MAX || it->offset >= options.size) {
        if (next_item >= item_count) return false;
        it->item = next_item++;
        it->offset = 0;
    }
    it->piece_start = it->offset;
    it->offset += options.size - it->offset < options.piece ? options.size - it->offset : options.piece;
    return true;
}

static bool ask_upload(connection *it) {
    if (!take_piece(it)) return false;
    char path[900];
    snprintf(path, sizeof(path), "%s/assets/%s-%" PRIu64 "?zone=%s&offset=%" PRIu64, options.own, assets[it->item].digest, options.size, options.zone,
             it->piece_start);
    begin(it, "PUT", path, "", "application/octet-stream", (char *)assets[it->item].bytes + it->piece_start, it->offset - it->piece_start);
    return true;
}

static bool ask_download(connection *it) {
    if (!take_piece(it)) return false;
    char path[900], range[80];
    snprintf(path, sizeof(path), "%s/assets/%s-%" PRIu64 "?zone=%s", options.own, assets[it->item].digest, options.size, options.zone);
    snprintf(range, sizeof(range), "Range: bytes=%" PRIu64 "-%" PRIu64 "\r\n", it->piece_start, it->offset - 1);
    begin(it, "GET", path, range, NULL, NULL, 0);
    return true;
}

/// What is downloaded is put together and its digest taken, as a client has to.
static void take_download(connection *it) {
    size_t length = it->answer.length - it->head_length;
    if (length != it->offset - it->piece_start) fail("%zu bytes came where %" PRIu64 " were asked for", length, it->offset - it->piece_start);
    reserve(&it->scratch, options.size);
    memcpy(it->scratch.bytes + it->piece_start, it->answer.bytes + it->head_length, length);
    if (it->offset < options.size) return;
    char digest[65];
    write_digest(it->scratch.bytes, options.size, digest);
    if (strcmp(digest, assets[it->item].digest) != 0) fail("asset %" PRIu64 " came back as another", it->item);
}

/// A record that names an asset: only then it may be read.
static bool ask_name(connection *it) {
    if (next_item >= item_count) return false;
    uint64_t number = next_item++;
    text *body = &it->scratch;
    body->length = 0;
    append(body, "{\"zoneID\":{\"zoneName\":\"%s\"},\"operations\":[{\"operationType\":\"forceUpdate\",\"record\":{", options.zone);
    append(body, "\"recordName\":\"asset-%" PRIu64 "-%" PRIu64 "\",\"recordType\":\"Picture\",\"fields\":{\"image\":{\"type\":\"ASSETID\",\"value\":",
           options.seed, number);
    append(body, "{\"size\":%" PRIu64 ",\"tidemark\":{\"digest\":\"%s\"}}}}}}]}", options.size, assets[number].digest);
    char path[600];
    snprintf(path, sizeof(path), "%s/records/modify", options.base);
    begin(it, "POST", path, "", "application/json", body->bytes, body->length);
    return true;
}

// Loops

static void react(connection *it, uint32_t events, void (*take)(connection *)) {
    if (it->is_connecting && events & (EPOLLOUT | EPOLLERR | EPOLLHUP)) {
        int error = 0;
        socklen_t length = sizeof(error);
        getsockopt(it->fd, SOL_SOCKET, SO_ERROR, &error, &length);
        if (error != 0) fail("connect: %s", strerror(error));
        it->is_connecting = false;
    }
    bool all_sent = !it->is_busy || send_more(it);
    if (events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) {
        reading read = it->is_busy ? read_more(it) : answer_broken;
        if (read == answer_broken) {
            bool was_busy = it->is_busy;
            close_connection(it);
            if (was_busy) counted.broken++;
            counted.reopened++;
            open_connection(it);
            return;
        }
        if (read == answer_whole) {
            it->is_busy = false;
            it->has_answered = true;
            double moment = now();
            if (is_well(it)) {
                if (take != NULL) take(it);
                if (it->planned >= measured_from) {
                    counted.answers++;
                    note_latency(moment - it->planned);
                }
            }
            const char *close = header(it, "Connection");
            if (close != NULL && strncasecmp(close, " close", 6) == 0) {
                close_connection(it);
                counted.reopened++;
                open_connection(it);
                return;
            }
        }
    }
    watch(it, EPOLLIN | EPOLLRDHUP | (it->is_connecting || !all_sent ? EPOLLOUT : 0), EPOLL_CTL_MOD);
}

static void start(connection *it, double planned) {
    it->planned = planned;
    bool sent = send_more(it);
    watch(it, EPOLLIN | EPOLLRDHUP | (sent ? 0 : EPOLLOUT), EPOLL_CTL_MOD);
}

/// Hands out requests: whether any is on its way, or planned.
static bool ask_free(bool (*ask)(connection *), double began, uint64_t *planned) {
    bool has_more = false;
    for (uint64_t index = 0; index < options.connections; index++) {
        connection *it = &connections[index];
        if (it->is_busy || it->is_connecting) {
            has_more = true;
            continue;
        }
        double moment = now(), at = options.rate > 0 ? began + (double)*planned / options.rate : moment;
        if (at > moment) return true;
        if (!ask(it)) continue;
        ++*planned;
        has_more = true;
        start(it, at);
    }
    return has_more;
}

/// Until there is no more to ask, or time is up; the seconds that were measured.
static double run(bool (*ask)(connection *), void (*take)(connection *), double seconds) {
    struct epoll_event events[512];
    double began = now(), end = seconds > 0 ? began + options.warm_up + seconds : 0;
    measured_from = seconds > 0 ? began + options.warm_up : began;
    uint64_t planned = 0;
    bool has_more = true;
    while (true) {
        if (end > 0 && now() >= end) has_more = false;
        if (has_more) has_more = ask_free(ask, began, &planned);
        uint64_t busy = 0;
        for (uint64_t index = 0; index < options.connections; index++) busy += connections[index].is_busy;
        // Who has not answered long after the end does not.
        if (!has_more && (busy == 0 || (end > 0 && now() > end + 30))) break;
        double wait = 0.1;
        if (has_more && options.rate > 0 && busy < options.connections) wait = began + (double)planned / options.rate - now();
        if (wait < 0) wait = 0;
        if (wait > 0.1) wait = 0.1;
        struct timespec time = {0, (long)(wait * 1e9)};
        int count = epoll_pwait2(poller, events, 512, &time, NULL);
        for (int index = 0; index < count; index++) react(events[index].data.ptr, events[index].events, take);
    }
    double ended = now();
    for (double at; options.rate > 0 && (at = began + (double)planned / options.rate) < end; planned++) {
        note_latency(ended - at);
        counted.unasked++;
    }
    return (end > 0 ? end : ended) - measured_from;
}

static void print_run(double seconds) {
    printf("{\"mode\": \"%s\", \"connections\": %" PRIu64 ", \"seconds\": %.3f, \"requests\": %" PRIu64
           ", \"refused\": %" PRIu64 ", \"broken\": %" PRIu64
           ", \"unasked\": %" PRIu64 ", \"requests/s\": %.1f",
           options.mode, options.connections, seconds, counted.answers, counted.refused, counted.broken, counted.unasked,
           (double)counted.answers / seconds);
    if (strcmp(options.mode, "modify") == 0) {
        printf(", \"records\": %" PRIu64 ", \"records/s\": %.1f, \"next\": %" PRIu64, counted.answers * options.batch,
               (double)(counted.answers * options.batch) / seconds, next_item);
    }
    if (item_count > 0) printf(", \"MB/s\": %.1f", (double)(item_count * options.size) / 1e6 / seconds);
    print_latencies();
    if (counted.first_refusal[0] != 0) fprintf(stderr, "load: refused, the first: %s\n", counted.first_refusal);
    puts("}");
}

/// Until all are connected, and, with something to ask, answered once.
static void connect_all(bool (*ask)(connection *), double seconds) {
    struct epoll_event events[512];
    uint64_t opened = 0, ready = 0;
    double end = now() + seconds;
    while (ready < options.connections && now() < end) {
        // Not more at once than a server's backlog takes.
        while (opened < options.connections && opened - ready < 64) open_connection(&connections[opened++]);
        int count = epoll_wait(poller, events, 512, 100);
        for (int index = 0; index < count; index++) {
            connection *it = events[index].data.ptr;
            bool was = ask ? it->has_answered : !it->is_connecting;
            react(it, events[index].events, NULL);
            if (ask != NULL && !it->is_connecting && !it->is_busy && !it->has_answered && ask(it)) start(it, now());
            if (!was && (ask ? it->has_answered : !it->is_connecting)) ready++;
        }
    }
    if (ready < options.connections) fail("only %" PRIu64 " of %" PRIu64 " connections are ready", ready, options.connections);
}

static void run_idle(void) {
    double began = now();
    connect_all(ask_lookup, 120);
    double opened = now() - began;
    uint64_t lost_before = counted.reopened;
    counted.answers = 0;
    struct epoll_event events[512];
    for (double end = now() + options.seconds; now() < end;) {
        int count = epoll_wait(poller, events, 512, 100);
        for (int index = 0; index < count; index++) react(events[index].data.ptr, events[index].events, NULL);
    }
    uint64_t closed = counted.reopened - lost_before;
    latencies.count = 0;
    uint64_t usable = 0;
    measured_from = 0;
    for (uint64_t index = 0; index < options.connections; index++) connections[index].has_answered = false;
    // Again, 64 at once.
    uint64_t asked = 0, busy = 0;
    for (double end = now() + 60; now() < end && usable + counted.broken + counted.refused < options.connections;) {
        while (busy < 64 && asked < options.connections) {
            connection *it = &connections[asked++];
            if (!it->is_connecting && ask_lookup(it)) start(it, now()), busy++;
        }
        int count = epoll_wait(poller, events, 512, 100);
        for (int index = 0; index < count; index++) {
            connection *it = events[index].data.ptr;
            bool was_busy = it->is_busy;
            react(it, events[index].events, NULL);
            if (was_busy && !it->is_busy) busy--, usable += it->has_answered;
        }
    }
    printf("{\"mode\": \"idle\", \"connections\": %" PRIu64 ", \"opening\": %.2f, \"closed\": %" PRIu64 ", \"usable\": %" PRIu64
           ", \"refused\": %" PRIu64,
           options.connections, opened, closed, usable - counted.refused, counted.refused);
    print_latencies();
    puts("}");
}

/// Connections that send nothing, or their headers or bodies a byte a second. One that is closed is opened anew.
static void run_slow(void) {
    static const char *kinds[] = {"nothing", "headers", "body"};
    struct epoll_event events[512];
    struct {
        uint64_t closed;
        double longest;
    } closed[3] = {{0}};
    text head = {0}, whole = {0};
    append(&head, "POST %s/records/lookup HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nX-Filler: ", options.base, options.host, options.token);
    append(&whole, "POST %s/records/lookup HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nContent-Length: 100000\r\n\r\n{\"records\":[",
           options.base, options.host, options.token);
    for (uint64_t index = 0; index < options.connections; index++) open_connection(&connections[index]);
    printf("{\"mode\": \"slow\", \"opened\": true}\n");
    fflush(stdout);
    bool together = strcmp(options.beat, "together") == 0;
    uint64_t sent = 0;
    double began = now(), end = began + options.seconds;
    while (now() < end) {
        int count = epoll_wait(poller, events, 512, 2);
        for (int index = 0; index < count; index++) {
            connection *it = events[index].data.ptr;
            uint64_t kind = it->number % 3;
            if (it->is_connecting && events[index].events & EPOLLOUT) {
                it->is_connecting = false;
                it->opened = now();
                const text *opening = kind == 1 ? &head : &whole;
                if (kind > 0 && send(it->fd, opening->bytes, opening->length, MSG_NOSIGNAL) < 0) events[index].events |= EPOLLHUP;
                watch(it, EPOLLIN | EPOLLRDHUP, EPOLL_CTL_MOD);
            }
            if (events[index].events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) {
                char some[4096];
                ssize_t got = recv(it->fd, some, sizeof(some), 0);
                if (got > 0 && !(events[index].events & (EPOLLRDHUP | EPOLLHUP))) continue;
                if (got < 0 && errno == EAGAIN) continue;
                double age = now() - it->opened;
                closed[kind].closed++;
                if (age > closed[kind].longest) closed[kind].longest = age;
                close_connection(it);
                open_connection(it);
            }
        }
        // Of each second's round, as much as is due.
        double seconds_in = now() - began;
        double rounds = together ? floor(seconds_in) : seconds_in;
        for (uint64_t due = (uint64_t)(rounds * (double)options.connections); sent < due; sent++) {
            connection *it = &connections[sent % options.connections];
            if (!it->is_connecting && it->number % 3 > 0) (void)!send(it->fd, " ", 1, MSG_NOSIGNAL);
        }
    }
    double moment = now();
    printf("{\"mode\": \"slow\", \"connections\": %" PRIu64, options.connections);
    for (int kind = 0; kind < 3; kind++) {
        double oldest = 0;
        for (uint64_t index = 0; index < options.connections; index++) {
            connection *it = &connections[index];
            if (it->number % 3 == (uint64_t)kind && !it->is_connecting && moment - it->opened > oldest) oldest = moment - it->opened;
        }
        printf(", \"%s\": {\"closed\": %" PRIu64 ", \"longest\": %.2f, \"oldest open\": %.2f}", kinds[kind],
               closed[kind].closed, closed[kind].longest, oldest);
    }
    puts("}");
    free(head.bytes);
    free(whole.bytes);
}

static uint64_t parse_number(const char *text, const char *option) {
    char *end;
    errno = 0;
    uint64_t value = strtoull(text, &end, 10);
    if (errno != 0 || *end != 0 || end == text || *text == '-') fail("--%s takes a whole number, not “%s”", option, text);
    return value;
}

static void parse(int count, char **arguments) {
    static const struct option names[] = {
        {"host", 1, NULL, 'h'},    {"port", 1, NULL, 'p'},  {"base", 1, NULL, 'b'},    {"own", 1, NULL, 'o'},    {"token", 1, NULL, 't'},
        {"zone", 1, NULL, 'z'},    {"answer", 1, NULL, 'a'}, {"beat", 1, NULL, 'e'}, {"connections", 1, NULL, 'c'},
        {"batch", 1, NULL, 'n'}, {"records", 1, NULL, 'r'},
        {"first", 1, NULL, 'f'},   {"seed", 1, NULL, 's'},  {"bytes", 1, NULL, 'B'},   {"size", 1, NULL, 'S'},   {"piece", 1, NULL, 'P'},
        {"seconds", 1, NULL, 'd'}, {"warm-up", 1, NULL, 'w'}, {"rate", 1, NULL, 'R'},  {NULL, 0, NULL, 0},
    };
    if (count < 2) fail("\n%s", usage);
    options.mode = arguments[1];
    optind = 2;
    for (int option, index = 0; (option = getopt_long(count, arguments, "", names, &index)) != -1;) {
        if (option == '?') fail("\n%s", usage);
        const char *name = names[index].name;
        switch (option) {
        case 'h': options.host = optarg; break;
        case 'b': options.base = optarg; break;
        case 'o': options.own = optarg; break;
        case 't': options.token = optarg; break;
        case 'z': options.zone = optarg; break;
        case 'a': options.answer = optarg; break;
        case 'e': options.beat = optarg; break;
        case 'p': options.port = parse_number(optarg, name); break;
        case 'c': options.connections = parse_number(optarg, name); break;
        case 'n': options.batch = parse_number(optarg, name); break;
        case 'r': options.records = parse_number(optarg, name); break;
        case 'f': options.first = parse_number(optarg, name); break;
        case 's': options.seed = parse_number(optarg, name); break;
        case 'B': options.bytes = parse_number(optarg, name); break;
        case 'S': options.size = parse_number(optarg, name); break;
        case 'P': options.piece = parse_number(optarg, name); break;
        case 'd': options.seconds = strtod(optarg, NULL); break;
        case 'w': options.warm_up = strtod(optarg, NULL); break;
        case 'R': options.rate = strtod(optarg, NULL); break;
        }
    }
    bool wrong = optind != count || options.port == 0 || options.port > 65535 || options.base == NULL || options.token == NULL
        || options.connections == 0 || options.batch == 0 || options.size == 0 || options.piece == 0;
    if (wrong) fail("\n%s", usage);
}

int main(int count, char **arguments) {
    parse(count, arguments);
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    if (files.rlim_cur < options.connections + 32) fail("%" PRIu64 " connections are more than the system allows", options.connections);
    address.sin_family = AF_INET;
    address.sin_port = htons((uint16_t)options.port);
    if (inet_pton(AF_INET, options.host, &address.sin_addr) != 1) fail("%s is no address", options.host);
    poller = epoll_create1(EPOLL_CLOEXEC);
    if (poller < 0) fail("epoll: %s", strerror(errno));
    connections = allocate(NULL, options.connections * sizeof(connection));
    memset(connections, 0, options.connections * sizeof(connection));
    for (uint64_t index = 0; index < options.connections; index++) {
        connections[index].number = index;
        connections[index].item = UINT64_MAX;
        connections[index].fd = -1;
    }
    bool is_modify = strcmp(options.mode, "modify") == 0, is_upload = strcmp(options.mode, "upload") == 0;
    bool is_download = strcmp(options.mode, "download") == 0;
    if (strcmp(options.mode, "idle") == 0) {
        run_idle();
    } else if (strcmp(options.mode, "slow") == 0) {
        run_slow();
    } else if (is_modify) {
        next_item = options.first;
        for (uint64_t index = 0; index < options.connections; index++) {
            make_batch(&connections[index].batch, options.seed * 7919 + index);
        }
        connect_all(NULL, 30);
        print_run(run(ask_modify, NULL, options.records > 0 ? 0 : options.seconds));
    } else if (strcmp(options.mode, "lookup") == 0) {
        connect_all(NULL, 30);
        print_run(run(ask_lookup, NULL, options.seconds));
    } else if (is_upload || is_download) {
        if (options.own == NULL) fail("\n%s", usage);
        item_count = options.bytes / options.size;
        assets = make_assets(item_count);
        connect_all(NULL, 30);
        double seconds = run(is_upload ? ask_upload : ask_download, is_upload ? NULL : take_download, 0);
        print_run(seconds);
        next_item = 0;
        if (is_upload) run(ask_name, NULL, 0);
        if (counted.refused > 0) fail("refused: %s", counted.first_refusal);
    } else {
        fail("\n%s", usage);
    }
    return counted.refused > 0 || counted.broken > 0 ? 1 : 0;
}
