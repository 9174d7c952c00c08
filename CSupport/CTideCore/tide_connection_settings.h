/// The settings that all connections share, for the core.

#ifndef TIDE_CONNECTION_SETTINGS_H
#define TIDE_CONNECTION_SETTINGS_H

#include <sqlite3.h>

/// Switches DEFENSIVE on; double-quoted strings, trusted schema and the checkpoint on closing off. Returns SQLite's code.
int tide_connection_configure(sqlite3 *connection);

#endif
