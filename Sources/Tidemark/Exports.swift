// A program that imports Tidemark gets the merge policies, scopes, locations, errors and the synchronisation of these modules.
@_exported import TidemarkCloud
@_exported import TidemarkContainers
@_exported import TidemarkModel
@_exported import TidemarkSQLite
@_exported import TidemarkStore
@_exported import TidemarkSync
