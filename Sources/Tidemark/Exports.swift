// Merge policies, scopes, places, errors and what synchronises are in the modules below: whoever imports Tidemark has them.
@_exported import TidemarkCloud
@_exported import TidemarkContainers
@_exported import TidemarkModel
@_exported import TidemarkSQLite
@_exported import TidemarkStore
@_exported import TidemarkSync
