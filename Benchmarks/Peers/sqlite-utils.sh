#!/bin/sh
# usage: sqlite-utils.sh MANIFEST DATABASE
# JSON Lines into SQLite with sqlite-utils, as its documentation shows it. PATH must lead to sqlite-utils.
exec sqlite-utils insert "$2" records - --nl --pk id < "$1"
