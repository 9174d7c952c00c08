// Its header is C++ and is included where it is used; this module only names the library.
