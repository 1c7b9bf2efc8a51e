#!/bin/sh
# Prints how full the filesystem of a path is, as JSON.
used=$(df -P -- "${PT_path:-/}" | awk 'NR == 2 { sub("%", "", $5); print $5 }')
[ -n "$used" ] || exit 1
if [ "$used" -ge "$PT_warn_percent" ]; then full=true; else full=false; fi
printf '{"path": "%s", "used_percent": %s, "too_full": %s}\n' "${PT_path:-/}" "$used" "$full"
