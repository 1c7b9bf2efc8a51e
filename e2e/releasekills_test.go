package e2e_test

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tutti-project/tutti/internal/release"
)

// kills counts in which states of releases the server was killed.
type kills map[string]int

// releaseStates are all names of states that a release, its waves and its targets can be in, as the code lists them.
func releaseStates() (names []string) {
	for _, s := range release.States() {
		names = append(names, "release "+string(s))
	}
	for _, h := range release.Holds() {
		names = append(names, "paused for "+string(h))
	}
	for _, p := range release.Phases() {
		names = append(names, "wave "+string(p))
	}
	for _, p := range release.Promotions() {
		names = append(names, "next wave "+string(p))
	}
	for _, s := range release.Standings() {
		names = append(names, "target "+string(s))
	}
	return names
}

// table is each state with the number of kills in it.
func (k kills) table() string {
	var text strings.Builder
	for _, name := range releaseStates() {
		fmt.Fprintf(&text, "%-28s %d\n", name, k[name])
	}
	return text.String()
}

// stands is a release as its rows say.
type stands struct {
	release.Release
	targets []release.Standing // each once
}

// phase is that of the wave that it is at.
func (s stands) phase() release.Phase {
	if s.Wave == 0 {
		return release.NotBegun
	}
	return s.Waves[s.Wave-1].Phase
}

// states are the names of all states that it is in.
func (s stands) states() []string {
	names := []string{"release " + string(s.State)}
	if s.Hold != release.NoHold {
		names = append(names, "paused for "+string(s.Hold))
	}
	for _, w := range s.Waves {
		names = append(names, "wave "+string(w.Phase))
	}
	between := s.phase() == release.Ended && s.Wave < len(s.Waves) // what promotion is for
	switch {
	case s.Promotion == release.Soaked && s.State == release.Running && between,
		s.Promotion == release.Manual && s.Hold == release.ForPromoter,
		s.Promotion == release.Automatic && s.State == release.Running && len(s.Waves) > 1 && s.Wave > 0:
		names = append(names, "next wave "+string(s.Promotion))
	}
	for _, t := range s.targets {
		names = append(names, "target "+string(t))
	}
	return names
}

// look reads how a release stands, whether a server runs or not.
func (c *releaseChaos) look(t *testing.T, id string) (s stands) {
	t.Helper()
	number, err := strconv.ParseInt(id, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	var waves, options string
	var ended int64
	err = c.rows.QueryRowContext(t.Context(), "SELECT id, state, hold, reason, wave, waves, options, ended_at FROM releases WHERE id = $1", number).
		Scan(&s.ID, &s.State, &s.Hold, &s.Reason, &s.Wave, &waves, &options, &ended)
	if err == nil {
		err = json.Unmarshal([]byte(waves), &s.Waves)
	}
	if err == nil {
		err = json.Unmarshal([]byte(options), &s.Options)
	}
	if err != nil {
		t.Fatal(err)
	}
	if ended > 0 {
		s.EndedAt = time.UnixMicro(ended)
	}
	s.Counts = release.Counts{}
	rows, err := c.rows.QueryContext(t.Context(), "SELECT state, COUNT(*) FROM release_targets WHERE release_id = $1 GROUP BY state", number)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var state release.Standing
		var n int
		if err := rows.Scan(&state, &n); err != nil {
			t.Fatal(err)
		}
		s.targets, s.Counts[state] = append(s.targets, state), n
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return s
}

// follow follows a release to its end. The server is killed in each state that it was not killed in before, of this release or another; what
// its rows say then is what counts. A person acts on what is seen.
func (c *releaseChaos) follow(t *testing.T, id string, person func(stands)) (last stands) {
	t.Helper()
	if c.rows == nil {
		c.rows = openDatabase(t, c.server)
	}
	tick := time.NewTicker(2 * time.Millisecond) // some states are short
	defer tick.Stop()
	for end := time.Now().Add(2 * patience); time.Now().Before(end); <-tick.C {
		now := c.look(t, id)
		switch {
		case c.kills.fresh(now):
			c.kill(t, id)
			end = time.Now().Add(2 * patience)
		case now.State.Final():
			return now
		default:
			person(now)
		}
	}
	t.Fatalf("release %s does not go on: %+v", id, c.look(t, id))
	return last
}

// fresh says whether a release is in a state in which the server was never killed.
func (k kills) fresh(s stands) bool {
	for _, name := range s.states() {
		if k[name] == 0 {
			return true
		}
	}
	return false
}

// kill kills the server, notes in which states, and starts it again.
func (c *releaseChaos) kill(t *testing.T, id string) {
	t.Helper()
	if err := c.server.crash(); err != nil {
		t.Error(err)
	}
	c.count++
	for _, name := range c.look(t, id).states() {
		c.kills[name]++
	}
	if err := c.server.start(); err != nil {
		t.Fatal(err)
	}
}
