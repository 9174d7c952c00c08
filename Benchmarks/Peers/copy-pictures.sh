#!/bin/sh
# usage: copy-pictures.sh FOLDER DESTINATION
# A folder of pictures copied, and everything written to the disk.
cp -r "$1" "$2" && exec sync
