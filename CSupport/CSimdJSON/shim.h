// simdjson's header is C++: the sources that use it include it themselves. This module only names the library to link.
