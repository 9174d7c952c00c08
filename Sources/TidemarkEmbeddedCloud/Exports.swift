// Programs that import this module use accounts and errors of the modules below.
@_exported import TidemarkCloud
@_exported import TidemarkCloudEngine
