// Accounts and errors of an embedded cloud are in the modules below: whoever imports this one has them.
@_exported import TidemarkCloud
@_exported import TidemarkCloudEngine
