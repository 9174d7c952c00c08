import AsyncHTTPClient
import NIOCore
