#!/bin/sh
. "$PT__installdir/package/files/common.sh"
family=$(PT_fact=family sh "$PT__installdir/facts/tasks/bash.sh")
answer "$(dpkg-query -W -f '${db:Status-Status}' "$PT_name")" "$family"
