//go:build race

package e2e_test

// raceEnabled makes the binary under test carry the race detector too.
const raceEnabled = true
