// Merge policies, scopes, places and errors are in the modules below: whoever imports Tidemark has them.
@_exported import TidemarkModel
@_exported import TidemarkStore
