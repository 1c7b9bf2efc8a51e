#!/bin/sh
# Tries the actions of MODULE as the agent would. It needs tutti on the PATH.
set -eu
cd "$(dirname "$0")"
BUILD
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

# expect TEXT ACTION FIELD=VALUE... wants TEXT in the JSON of the results.
expect() {
  want=$1
  shift
  got=$(tutti action try ./MODULE "$@" -o json | tr -d ' \n')
  case $got in
  *"$want"*) ;;
  *)
    echo "$*: $got, and not $want" >&2
    exit 1
    ;;
  esac
}

expect '"present":false' status path="$dir/note"
expect '"changed":true' write path="$dir/note" text=hello
expect '"changed":false' write path="$dir/note" text=hello
expect '"bytes":6' status path="$dir/note"
if tutti action try ./MODULE write path="$dir/nowhere/note" text=hello 2> "$dir/why"; then
  echo "a note was written where no directory is" >&2
  exit 1
fi
grep "there is no directory $dir/nowhere" "$dir/why" > /dev/null
echo "MODULE does what it is for"
