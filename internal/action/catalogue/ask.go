package catalogue

import (
	"context"
	"iter"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/tutti-project/tutti/internal/action"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// asked begins the transactions of a Service's questions, which are no runs.
const asked = "modules-"

// asking is which questions are open, and what came of earlier ones. The Service's lock is held.
type asking struct {
	open    map[string]openQuestion // by transaction
	resting map[fleet.Certname]time.Time
	vain    map[Thing]vain
	full    bool // it was said that there is no more room
}

type openQuestion struct {
	Question
	until   time.Time
	reading bool // its answer is here
}

// vain is what was asked for, and nobody gave.
type vain struct {
	times  int
	before time.Time // not again before
}

// The pause after a vain question, which doubles, and the longest one.
const (
	firstPause   = 5 * time.Second
	longestPause = time.Hour
)

func newAsking() asking {
	return asking{open: map[string]openQuestion{}, resting: map[fleet.Certname]time.Time{}, vain: map[Thing]vain{}}
}

// Step asks what is to be asked now.
func (s *Service) Step(ctx context.Context) {
	for transaction, q := range s.next(ctx) {
		if err := s.parts.Ask(ctx, q.Node, requestOf(transaction, q.Thing)); err != nil {
			s.mu.Lock() // it left just now, and tells again when it is back
			delete(s.asking.open, transaction)
			s.mu.Unlock()
		}
	}
}

func requestOf(transaction string, t Thing) pxp.Request {
	r := pxp.Request{Transaction: transaction, Module: pxp.Modules, Action: pxp.List, Params: jsontext.Value("{}")}
	if t.Set == "" {
		r.Action, r.Params = pxp.Describe, pxp.Data(pxp.DescribeParams{Name: t.Name})
	}
	return r
}

// next opens the questions that are to be asked, by transaction.
func (s *Service) next(ctx context.Context) map[string]Question {
	now := s.parts.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tidy(now)
	situation := Situation{Wanted: s.wanted(ctx), Resting: s.asking.resting, Most: s.limits.Open - len(s.freshModules), Now: now}
	for _, q := range s.asking.open {
		situation.Open = append(situation.Open, q.Question)
	}
	questions := map[string]Question{}
	for _, q := range Next(situation) {
		transaction := asked + s.parts.NewID()
		s.asking.open[transaction] = openQuestion{Question: q, until: now.Add(s.limits.Patience)}
		questions[transaction] = q
	}
	return questions
}

// tidy ends questions that took too long, and rests that are over. The caller holds the lock.
func (s *Service) tidy(now time.Time) {
	for transaction, q := range s.asking.open {
		if q.until.Before(now) && !q.reading {
			delete(s.asking.open, transaction)
			s.inVain(q.Question, now, s.limits.Patience)
		}
	}
	for node, until := range s.asking.resting {
		if until.Add(longestPause).Before(now) {
			delete(s.asking.resting, node)
		}
	}
	for thing, v := range s.asking.vain {
		if v.before.Add(longestPause).Before(now) {
			delete(s.asking.vain, thing)
		}
	}
}

// inVain lets the node rest, and the thing for a time of its own. The caller holds the lock.
func (s *Service) inVain(q Question, now time.Time, rest time.Duration) {
	s.asking.resting[q.Node] = now.Add(rest)
	v := s.asking.vain[q.Thing]
	v.before = now.Add(min(firstPause<<min(v.times, 20), longestPause))
	v.times++
	s.asking.vain[q.Thing] = v
}

// wanted is what is not known, if there is room for it. The caller holds the lock.
func (s *Service) wanted(ctx context.Context) []Wanted {
	var lists, descriptions []Wanted
	noSets, noBytes := s.fullOfSets(), s.fullOfModules()
	full := false
	for digest, one := range s.sets {
		if !one.known {
			full = full || noSets
			if !noSets {
				lists = append(lists, s.want(Thing{Set: digest}, one))
			}
			continue
		}
		for l := range s.missing(one) {
			full = full || noBytes
			if !noBytes {
				descriptions = append(descriptions, s.want(Thing{Module: l.Digest, Name: l.Name}, one))
			}
		}
	}
	if full && !s.asking.full {
		s.parts.Log.WarnContext(ctx, "nodes have more kinds of modules than this server keeps; some stay unknown", "sets", s.known, "bytes", s.bytes)
	}
	s.asking.full = full
	return append(lists, descriptions...)
}

func (s *Service) want(t Thing, one *set) Wanted {
	return Wanted{Thing: t, Holders: s.connected(one), NotBefore: s.asking.vain[t].before}
}

// connected is the nodes of a set whose agents are there.
func (s *Service) connected(one *set) iter.Seq[fleet.Certname] {
	return func(yield func(fleet.Certname) bool) {
		for node := range one.nodes {
			if s.parts.Connected(node) && !yield(node) {
				return
			}
		}
	}
}

// again ends the questions of a node that has connected again: it may not have heard them. The caller holds the lock.
func (s *Service) again(node fleet.Certname) {
	for transaction, q := range s.asking.open {
		if q.Node == node && !q.reading {
			delete(s.asking.open, transaction)
		}
	}
}

// take is an open question of a node whose answer is here; false: there is none. It stays open, so that nobody else is asked meanwhile.
func (s *Service) take(node fleet.Certname, transaction string) (Question, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q, open := s.asking.open[transaction]
	if !open || q.Node != node || q.reading {
		return Question{}, false
	}
	q.reading = true
	s.asking.open[transaction] = q
	return q.Question, true
}

// Answered takes results that a node gave; false: they are to no question of this package. Those that come too late are to one, too.
func (s *Service) Answered(ctx context.Context, node fleet.Certname, transaction string, results jsontext.Value) bool {
	if !strings.HasPrefix(transaction, asked) {
		return false
	}
	q, open := s.take(node, transaction)
	if !open {
		return true
	}
	list, described, err := read(q.Thing, results)
	now := s.parts.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.asking.open, transaction)
	switch {
	case err != nil:
		s.inVain(q, now, s.limits.Rest)
		s.parts.Log.WarnContext(ctx, "a node's word on its modules cannot be used, and it is not asked for a while", "node", node, "module", q.Thing.Name, "err", err)
	case q.Thing.Set != "":
		s.learn(q.Thing.Set, list)
		delete(s.asking.vain, q.Thing)
	default:
		described.Known = now
		s.describe(described)
		delete(s.asking.vain, q.Thing)
	}
	s.nudge()
	return true
}

// Refused takes the word of a node that it does not answer; false: it is about no question of this package.
func (s *Service) Refused(ctx context.Context, node fleet.Certname, transaction, why string) bool {
	if !strings.HasPrefix(transaction, asked) {
		return false
	}
	if q, open := s.take(node, transaction); open {
		s.mu.Lock()
		delete(s.asking.open, transaction)
		s.inVain(q, s.parts.Now(), s.limits.Rest)
		s.mu.Unlock()
		s.parts.Log.InfoContext(ctx, "a node does not tell of its modules, and is not asked for a while", "node", node, "module", q.Thing.Name, "why", why)
		s.nudge()
	}
	return true
}

// read holds an answer to what was asked.
func read(t Thing, results jsontext.Value) (list action.Set, described Metadata, err error) {
	if t.Set != "" {
		said, err := pxp.ParseListResults(results)
		if err != nil {
			return nil, described, err
		}
		if list, err = action.ParseSet(said.Modules); err == nil && list.Digest() != t.Set {
			err = fault.New(fault.Invalid, "the list is not the one of the digest that the node told")
		}
		return list, described, err
	}
	said, err := pxp.ParseDescribeResults(results)
	if err != nil {
		return nil, described, err
	}
	m, err := action.Parse(t.Name, said.Metadata)
	if err != nil {
		return nil, described, err
	}
	text := m.Text()
	if fleet.DigestOf(text) != t.Module {
		return nil, described, fault.New(fault.Invalid, "the metadata are not those of the digest that the node told")
	}
	described = Metadata{Described{
		Digest: t.Module, Name: m.Name, Version: action.Line(m.Version), Provider: m.Provider, Description: action.Line(m.Description), Bytes: int64(len(text)),
	}, text}
	return nil, described, nil
}
