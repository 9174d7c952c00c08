#pragma once

// libpq for Swift, with functions for the error fields that libpq names by macros of characters (PG_DIAG_…).

#include <libpq-fe.h>

/// The SQLSTATE of a result that is an error; `NULL` where the server has sent none, such as after a lost connection. The result owns it.
static inline const char *_Nullable tide_pg_state(const PGresult *_Nonnull result) {
    return PQresultErrorField(result, PG_DIAG_SQLSTATE);
}

/// Returns whether an error of the severity FATAL or PANIC ended the session.
static inline _Bool tide_pg_ends_session(const PGresult *_Nonnull result) {
    const char *severity = PQresultErrorField(result, PG_DIAG_SEVERITY_NONLOCALIZED);
    return severity && (severity[0] == 'F' || severity[0] == 'P');
}

/// The primary message of a result that is an error, without its details, which may have values of rows. The result owns it.
static inline const char *_Nullable tide_pg_message(const PGresult *_Nonnull result) {
    return PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
}

/// Returns the name of the violated constraint, or `NULL`. The result owns the text.
static inline const char *_Nullable tide_pg_constraint(const PGresult *_Nonnull result) {
    return PQresultErrorField(result, PG_DIAG_CONSTRAINT_NAME);
}

static inline void tide_pg_ignore(void *_Nullable context, const PGresult *_Nullable notice) {
    (void)context;
    (void)notice;
}

/// Drops the notices of a server, which libpq would print.
static inline void tide_pg_ignore_notices(PGconn *_Nonnull connection) {
    (void)PQsetNoticeReceiver(connection, tide_pg_ignore, NULL);
}
