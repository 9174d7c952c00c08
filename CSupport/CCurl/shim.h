#pragma once

// libcurl for Swift. Swift can't call functions with a variable number of arguments, such as curl_easy_setopt, so there is one function
// for each type of argument. It passes its arguments on, and returns what libcurl returns. libcurl copies texts. Callbacks and their
// data belong to the caller, and must live as long as the handle.

#include <curl/curl.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>

#if LIBCURL_VERSION_NUM < 0x075000
#error "Tidemark needs libcurl 7.80 or newer"
#endif

static inline CURLcode tide_curl_global_init(void) { return curl_global_init(CURL_GLOBAL_DEFAULT); }

static inline CURLcode tide_curl_set_number(CURL *_Nonnull easy, CURLoption option, long value) {
    return curl_easy_setopt(easy, option, value);
}

static inline CURLcode tide_curl_set_size(CURL *_Nonnull easy, CURLoption option, int64_t value) {
    return curl_easy_setopt(easy, option, (curl_off_t)value);
}

static inline CURLcode tide_curl_set_text(CURL *_Nonnull easy, CURLoption option, const char *_Nullable text) {
    return curl_easy_setopt(easy, option, text);
}

static inline CURLcode tide_curl_set_pointer(CURL *_Nonnull easy, CURLoption option, void *_Nullable pointer) {
    return curl_easy_setopt(easy, option, pointer);
}

static inline CURLcode tide_curl_set_list(CURL *_Nonnull easy, CURLoption option, struct curl_slist *_Nullable list) {
    return curl_easy_setopt(easy, option, list);
}

/// For CURLOPT_WRITEFUNCTION, CURLOPT_READFUNCTION and CURLOPT_HEADERFUNCTION.
static inline CURLcode tide_curl_set_callback(
    CURL *_Nonnull easy, CURLoption option,
    size_t (*_Nonnull callback)(char *_Nullable bytes, size_t size, size_t count, void *_Nullable context)) {
    return curl_easy_setopt(easy, option, callback);
}

static inline CURLcode tide_curl_set_seek(
    CURL *_Nonnull easy, int (*_Nonnull callback)(void *_Nullable context, curl_off_t offset, int origin)) {
    return curl_easy_setopt(easy, CURLOPT_SEEKFUNCTION, callback);
}

/// Calls back once a connection is established, before its request is sent.
static inline CURLcode tide_curl_set_before_request(
    CURL *_Nonnull easy,
    int (*_Nonnull callback)(
        void *_Nullable context, char *_Nullable remote, char *_Nullable local, int remote_port, int local_port)) {
    return curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, callback);
}

/// Calls back before the TLS handshake of a connection. Some builds of libcurl do not support it.
static inline CURLcode tide_curl_set_before_handshake(
    CURL *_Nonnull easy,
    CURLcode (*_Nonnull callback)(CURL *_Nullable easy, void *_Nullable tls, void *_Nullable context)) {
    return curl_easy_setopt(easy, CURLOPT_SSL_CTX_FUNCTION, callback);
}

/// Trusts these certificates (PEM), which libcurl copies, and no others.
static inline CURLcode tide_curl_set_authorities(CURL *_Nonnull easy, const void *_Nonnull pem, size_t count) {
    struct curl_blob blob = {.data = (void *)pem, .len = count, .flags = CURL_BLOB_COPY};
    CURLcode code = curl_easy_setopt(easy, CURLOPT_CAINFO_BLOB, &blob);
    return code == CURLE_OK ? curl_easy_setopt(easy, CURLOPT_CAPATH, NULL) : code;
}

/// Speaks nothing but `https`, or nothing but `http`.
static inline CURLcode tide_curl_set_scheme(CURL *_Nonnull easy, int is_secure) {
#if LIBCURL_VERSION_NUM >= 0x075500
    return curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, is_secure ? "https" : "http");
#else
    return curl_easy_setopt(easy, CURLOPT_PROTOCOLS, (long)(is_secure ? CURLPROTO_HTTPS : CURLPROTO_HTTP));
#endif
}

/// Speaks nothing but `smtps`, or nothing but `smtp`.
static inline CURLcode tide_curl_set_mail_scheme(CURL *_Nonnull easy, int begins_with_tls) {
#if LIBCURL_VERSION_NUM >= 0x075500
    return curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, begins_with_tls ? "smtps" : "smtp");
#else
    return curl_easy_setopt(easy, CURLOPT_PROTOCOLS, (long)(begins_with_tls ? CURLPROTO_SMTPS : CURLPROTO_SMTP));
#endif
}

/// A request that ends does not wait for the resolver of names, which has no time limit of its own.
static inline CURLcode tide_curl_set_quick_exit(CURL *_Nonnull easy) {
#if LIBCURL_VERSION_NUM >= 0x075700
    return curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);
#else
    (void)easy;
    return CURLE_OK;
#endif
}

static inline curl_socket_t tide_curl_open_socket(
    void *_Nullable context, curlsocktype purpose, struct curl_sockaddr *_Nonnull address) {
    (void)context;
    (void)purpose;
#ifdef SOCK_CLOEXEC
    curl_socket_t opened = socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
#else
    curl_socket_t opened = socket(address->family, address->socktype, address->protocol);
    if (opened >= 0) (void)fcntl(opened, F_SETFD, FD_CLOEXEC);
#endif
#ifdef TCP_NOTSENT_LOWAT
    // The kernel holds at most so much of a body that is not sent yet. With a larger buffer, a body that is stuck would seem to move.
    int waiting = 1 << 17;
    if (opened >= 0) (void)setsockopt(opened, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &waiting, sizeof waiting);
#endif
    return opened;
}

/// Has libcurl open sockets that child processes do not inherit, and whose small send buffer shows whether a body moves.
static inline CURLcode tide_curl_set_open_socket(CURL *_Nonnull easy) {
    return curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, &tide_curl_open_socket);
}

static inline CURLMcode tide_curl_multi_set_number(CURLM *_Nonnull multi, CURLMoption option, long value) {
    return curl_multi_setopt(multi, option, value);
}

static inline long tide_curl_number(CURL *_Nonnull easy, CURLINFO info) {
    long value = 0;
    return curl_easy_getinfo(easy, info, &value) == CURLE_OK ? value : 0;
}

/// Returns a finished request, and stores its result in `code`. Returns `NULL` if no request has finished.
static inline CURL *_Nullable tide_curl_next_ended(CURLM *_Nonnull multi, CURLcode *_Nonnull code) {
    int left = 0;
    CURLMsg *message;
    while ((message = curl_multi_info_read(multi, &left))) {
        if (message->msg != CURLMSG_DONE) continue;
        *code = message->data.result;
        return message->easy_handle;
    }
    return NULL;
}

/// Blocks signals on this thread. Other threads handle the process's signals, and a broken connection raises no SIGPIPE here.
static inline void tide_curl_block_signals(void) {
    sigset_t all;
    sigfillset(&all);
    // The signals of the thread's own errors still end the process.
    sigdelset(&all, SIGSEGV);
    sigdelset(&all, SIGBUS);
    sigdelset(&all, SIGILL);
    sigdelset(&all, SIGFPE);
    sigdelset(&all, SIGTRAP);
    sigdelset(&all, SIGABRT);
    (void)pthread_sigmask(SIG_SETMASK, &all, NULL);
}
