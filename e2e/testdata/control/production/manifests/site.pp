# Each story picks its class with the fact "story" and writes below the fact "scratch".
node default {
  if $facts['story'] {
    include "story::${facts['story']}"
  }
}
