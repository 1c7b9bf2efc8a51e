#!/bin/sh
test "$PT_fact" != family || { echo linux; exit; }
cd "$PT__installdir" && find . -type f | LC_ALL=C sort
