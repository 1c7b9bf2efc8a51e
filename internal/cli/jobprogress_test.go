package cli

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"
)

// Ctrl-C leaves the job to go on; once more, and it is asked to stop.
func TestInterrupts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		signals int
		stopped bool
	}{"once": {1, false}, "twice": {2, true}, "another signal": {0, false}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := mixed(t)
			s.hold = make(chan struct{})
			ctx, cancel := context.WithCancel(t.Context())
			signals := make(chan os.Signal, 2)
			seen := &watched{until: "offline", then: func() {
				for range c.signals {
					signals <- os.Interrupt
				}
				cancel()
			}}
			got := s.tutti(ctx, "", func(system *System) {
				system.Err, system.ErrWidth, system.SecondChance = seen, 80, 50*time.Millisecond
				system.Interrupts = func() (<-chan os.Signal, func()) { return signals, func() {} }
			}, "job", "watch", "12")
			if got.code != exitInterrupted || s.stopped != c.stopped || !strings.Contains(seen.text.String(), "tutti job watch 12") || got.out != "" {
				t.Errorf("exit code %d, stopped %v, %q", got.code, s.stopped, seen.text.String())
			}
		})
	}
}

// watched is an output that does something when a text has been written to it.
type watched struct {
	text  strings.Builder
	until string
	then  func()
}

func (w *watched) Write(p []byte) (int, error) {
	n, err := w.text.Write(p)
	if w.then != nil && strings.Contains(w.text.String(), w.until) {
		then := w.then
		w.then = nil
		then()
	}
	return n, err
}

// On a terminal the progress is written over; NO_COLOR, TERM=dumb and CI are heeded.
func TestProgressOnATerminal(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		env            []string
		moves, colours bool
	}{
		"terminal":      {moves: true, colours: true},
		"no colour":     {env: []string{"NO_COLOR=1"}, moves: true},
		"dumb":          {env: []string{"TERM=dumb"}},
		"in a pipeline": {env: []string{"CI=1"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := mixed(t)
			got := s.tutti(t.Context(), "", func(system *System) { system.ErrWidth, system.Env = 100, append(system.Env, c.env...) }, "job", "watch", "12")
			if strings.Contains(got.err, "\x1b[2K") != c.moves || strings.Contains(got.err, "\x1b[31m") != c.colours {
				t.Errorf("%q", got.err)
			}
			if cleared := strings.Contains(got.err, "\x1b[J"); cleared { // standard output is elsewhere: what failed stays to be read
				t.Errorf("failures were taken away: %q", got.err)
			}
			got = s.tutti(t.Context(), "", func(system *System) {
				system.Width, system.ErrWidth, system.Env = 100, 100, append(system.Env, c.env...)
			}, "job", "watch", "12")
			if c.moves && !strings.HasSuffix(strings.Split(got.err, "tutti: job 12")[0], "\x1b[2A\x1b[J") {
				t.Errorf("what failed stands there before it is printed: %q", got.err)
			}
			if c.moves &&
				!strings.Contains(got.err, "████████████████████ Job 12 failed: 5 of 5 done (3 succeeded, 1 failed, 1 offline)") {
				t.Errorf("%q", got.err)
			}
		})
	}
}

// Why a run did not succeed is said once: at the end, or as soon as nobody waits for the end.
func TestReasonsAreAlwaysSaid(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		flags     []string
		cut       bool   // Ctrl-C after the last run
		out, errs string // where the reason is, and what else is there; empty: nothing is
	}{
		"a pipe":                {out: "d: failed: exit code 3\n"},
		"quiet":                 {flags: []string{"--quiet"}, out: "d: failed: exit code 3\n"},
		"a table for programs":  {flags: []string{"-o", "csv"}, out: "d,failed,3,3,exit code 3\n", errs: "d: failed: exit code 3 (3s)\n"},
		"interrupted":           {cut: true, errs: "away: offline\nd: failed: exit code 3\naway: offline: not connected\n"},
		"YAML":                  {flags: []string{"-o", "yaml"}, out: "reason: exit code 3\n", errs: "d: failed: exit code 3 (3s)\n"},
		"interrupted, for JSON": {flags: []string{"-o", "json"}, cut: true, errs: "d: failed: exit code 3 (3s)\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := mixed(t)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			seen := &watched{}
			if c.cut {
				s.hold = make(chan struct{})
				seen.until, seen.then = "offline", cancel
			}
			got := s.tutti(ctx, "", func(system *System) { system.Err = seen }, append([]string{"job", "watch", "12"}, c.flags...)...)
			for _, at := range []struct{ where, text, want string }{{"standard output", got.out, c.out}, {"standard error", seen.text.String(), c.errs}} {
				if !strings.Contains(at.text, at.want) || at.want == "" && strings.Contains(at.text, "exit code 3") {
					t.Errorf("%s, want %q:\n%s\nof\n%s%s", at.where, at.want, at.text, got.err, seen.text.String())
				}
			}
		})
	}
}
