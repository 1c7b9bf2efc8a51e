package agent

import (
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/tutti-project/tutti/internal/agent/facter"
	"github.com/tutti-project/tutti/internal/agent/orders"
	"github.com/tutti-project/tutti/internal/agent/schedule"
	"github.com/tutti-project/tutti/internal/facts"
	"github.com/tutti-project/tutti/internal/fleet"
)

// keptFacts is what a server has of this node's facts, kept in facts.json of the data directory.
type keptFacts struct {
	Number        int64           `json:"number"`           // of the newest submission that was accepted
	Digest        fleet.Digest    `json:"digest,omitempty"` // that the server gave for it: the base of a difference; empty: send all
	Values        json.RawMessage `json:"values,omitempty"` // what was submitted
	Seq           int64           `json:"seq,omitempty"`
	Accepted      time.Time       `json:"accepted"`
	Queued        bool            `json:"queued,omitempty"`
	Differences   int             `json:"differences"` // since the last whole set
	Watched       []string        `json:"watched,omitempty"`
	WatchedDigest fleet.Digest    `json:"watched_digest,omitempty"`
}

// learn takes the list of watched facts from a server's answer, which leaves it out if it is the same.
func (k *keptFacts) learn(state facts.State) {
	if state.WatchedDigest != k.WatchedDigest {
		k.Watched, k.WatchedDigest = slices.Clone(state.Watched), state.WatchedDigest
	}
}

// factsFile keeps keptFacts.
type factsFile string

func (f factsFile) save(k keptFacts) error {
	text, err := json.Marshal(k)
	if err != nil {
		return err
	}
	return write(string(f), text, 0o600)
}

// load reads what an earlier agent kept. What cannot be read is submitted anew.
func (f factsFile) load(log *slog.Logger) keptFacts {
	var k keptFacts
	text, err := os.ReadFile(string(f))
	if err == nil {
		err = json.Unmarshal(text, &k)
	}
	if err == nil && k.Digest != "" {
		k.Values, _, err = facts.Canonical(k.Values)
	}
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			log.Warn("what was submitted of facts cannot be read; all are submitted again", "err", err)
		}
		return keptFacts{}
	}
	return k
}

// newFacts makes what submits the node's facts.
func (d *daemon) newFacts() *submitter {
	f := &submitter{
		source: facter.New(facter.Config{Puppet: func() (string, error) { return findPuppet(d.Puppet) }, Timeout: d.FactsTimeout, Log: d.log}),
		store:  factsFile(filepath.Join(d.Data, "facts.json")), servers: d.primaries(), client: d.filesClient(),
		interval: d.FactsInterval, watch: d.FactsWatch, log: d.log, wanted: newSignal(), back: newSignal(), turn: make(chan struct{}, 1),
		blind: map[string]int{},
	}
	f.kept = f.store.load(d.log)
	return f
}

// afterRuns is a spool that tells of Puppet runs that may have changed facts.
type afterRuns struct {
	orders.Spool
	changed signal
}

// Save implements orders.Spool.
func (s afterRuns) Save(r orders.Record) error {
	if err := s.Spool.Save(r); err != nil {
		return err
	}
	if !isPuppetRun(r) || !r.Status.Over() || r.Delivered && r.Notify { // once a run
		return nil
	}
	output, err := s.Output(r.Transaction)
	if err != nil || outcomeOf(r, output).Status == schedule.Unchanged {
		return nil //nolint:nilerr // the record was saved: that counts
	}
	s.changed.give()
	return nil
}

// FactsStatus is how submitting facts stands.
type FactsStatus struct {
	Interval string     `json:"interval,omitempty"` // empty: they are not submitted
	Accepted *time.Time `json:"accepted,omitempty"` // when a server took some the last time
	Number   int64      `json:"number,omitempty"`   // of that submission
	Queued   bool       `json:"queued,omitempty"`   // the server had not applied it yet
	Waiting  bool       `json:"waiting,omitempty"`  // newer ones wait for a server
	Watched  int        `json:"watched"`            // facts that the catalog read
	Looked   *time.Time `json:"looked,omitempty"`   // when these were looked at
	Next     *time.Time `json:"next,omitempty"`
	Problem  string     `json:"problem,omitempty"` // of the last try
}

func (f *submitter) status() FactsStatus {
	if f.interval == 0 || len(f.servers) == 0 {
		return FactsStatus{}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return FactsStatus{
		Interval: f.interval.String(), Accepted: known(f.kept.Accepted), Number: f.kept.Number, Queued: f.kept.Queued, Waiting: f.pending != nil,
		Watched: len(f.kept.Watched), Looked: known(f.looked), Next: known(f.next), Problem: f.problem,
	}
}

// known is a time, or nil for none.
func known(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

// checkFacts refuses settings that cannot be.
func (c Config) checkFacts() error {
	for key, value := range map[string]time.Duration{"facts_interval": c.FactsInterval, "facts_watch_interval": c.FactsWatch} {
		if value != 0 && value < time.Second {
			return bad(key, "%s is too short; write a number with its unit, for example 30m, or 0 for never", value)
		}
	}
	if c.FactsTimeout < time.Second {
		return bad("facts_timeout", "%s is too short; write a number with its unit, for example 5m", c.FactsTimeout)
	}
	return nil
}
