package agent

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/tutti-project/tutti/internal/agent/facter"
	"github.com/tutti-project/tutti/internal/facts"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

const (
	factsPath = "/node/v1/facts"
	// wholeEvery is how many differences are sent between two whole sets.
	wholeEvery = 47
	// longestWait is how long a server may put a node off.
	longestWait = 10 * time.Minute

	maxFactsAnswer = 4 << 20
	factsTime      = 2 * time.Minute
)

// send submits facts to the first server that takes them. After says how long the server wants to be left alone.
func (f *submitter) send(ctx context.Context, found facter.Facts) (after time.Duration, err error) {
	for _, server := range f.servers {
		if after, err = f.sendTo(ctx, server, found); err == nil || ctx.Err() != nil {
			return after, err
		}
		if kind := fault.Of(err); kind != fault.Unavailable && kind != fault.NotFound {
			return after, err
		}
	}
	return after, err
}

func (f *submitter) sendTo(ctx context.Context, server string, found facter.Facts) (time.Duration, error) {
	kept := f.keeping()
	whole := kept.Digest == "" || kept.Differences >= wholeEvery
	for range 3 { // a server that knows more than we remember says what does fit
		sub, err := f.submission(kept, found, whole)
		if err != nil {
			return 0, err
		}
		reply, err := f.ask(ctx, server, method(whole), sub)
		if err != nil {
			return reply.after, err
		}
		if reply.status == http.StatusConflict {
			f.log.InfoContext(ctx, "all facts are submitted, the difference does not fit", "server", server, "why", reply.said)
			kept.Number, whole = max(sub.Number, reply.Number), true
			continue
		}
		if reply.Digest != fleet.DigestOf(found.Values) { // an earlier submission had this number
			kept.Number, whole = max(sub.Number, reply.Number), true
			continue
		}
		return 0, f.accepted(ctx, kept, found, sub, reply.State)
	}
	return 0, fault.New(fault.Unavailable, "%s goes on to refuse facts: another agent may have the same certificate", server)
}

func method(whole bool) string {
	if whole {
		return http.MethodPut
	}
	return http.MethodPatch
}

// submission makes the next one. Its number is the time, unless the clock went back.
func (f *submitter) submission(kept keptFacts, found facter.Facts, whole bool) (sub facts.Submission, err error) {
	sub = facts.Submission{
		Number: max(time.Now().UnixMicro(), kept.Number+1), Timestamp: found.Timestamp.UTC(), Watched: kept.WatchedDigest,
		Arrangement: found.Arrangement,
	}
	if env, err := fleet.ParseEnvironment(found.Environment); err == nil {
		sub.Environment = env
	}
	if whole {
		sub.Values = found.Values
		return sub, nil
	}
	sub.Base = kept.Digest
	sub.Patch, err = facts.Difference(kept.Values, found.Values)
	return sub, err
}

// accepted keeps what a server has now.
func (f *submitter) accepted(ctx context.Context, kept keptFacts, found facter.Facts, sub facts.Submission, state facts.State) error {
	before := kept.Values
	kept.Number, kept.Digest, kept.Seq, kept.Values, kept.Accepted = sub.Number, state.Digest, state.Seq, found.Values, time.Now().UTC()
	kept.Queued = state.Queued
	kept.Differences++
	if sub.Values != nil {
		kept.Differences = 0
	}
	kept.learn(state)
	f.reconsider(before, found.Values)
	f.log.InfoContext(ctx, "facts accepted", "changed", state.Changed, "queued", state.Queued, "whole", sub.Values != nil, "watched", len(kept.Watched))
	return f.keep(kept)
}

func (f *submitter) keep(kept keptFacts) error {
	f.mu.Lock()
	f.kept = kept
	f.mu.Unlock()
	if err := f.store.save(kept); err != nil { // the server has them; the next submission is a whole one after a restart
		f.log.Warn("what was submitted of facts cannot be kept", "err", err)
	}
	return nil
}

// learn asks which facts are watched now, and whether what was submitted is still the base of
// differences: a run may have brought newer facts.
func (f *submitter) learn(ctx context.Context) {
	for _, server := range f.servers {
		reply, err := f.ask(ctx, server, http.MethodGet, facts.Submission{})
		if err != nil {
			continue // the next server, or what is known
		}
		kept := f.keeping()
		if reply.Digest != kept.Digest {
			kept.Digest = ""
		}
		kept.learn(reply.State)
		kept.Number = max(kept.Number, reply.Number)
		_ = f.keep(kept)
		return
	}
}

// factsReply is what a server says.
type factsReply struct {
	facts.State
	status int
	after  time.Duration
	said   string
}

// ask sends one request. A conflict is no error.
func (f *submitter) ask(ctx context.Context, server, method string, sub facts.Submission) (reply factsReply, err error) {
	ctx, cancel := context.WithTimeout(ctx, factsTime)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(server, "/")+factsPath, http.NoBody)
	if err == nil && method != http.MethodGet {
		err = pack(r, sub)
	}
	if err != nil {
		return reply, err
	}
	response, err := f.client.Do(r)
	if err != nil {
		return reply, unreachable(ctx, server, err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxFactsAnswer))
	if err != nil {
		return reply, unreachable(ctx, server, err)
	}
	return readReply(server, response, text)
}

// pack makes a submission the body of a request.
func pack(r *http.Request, sub facts.Submission) error {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if err := json.NewEncoder(z).Encode(sub); err != nil {
		return err
	}
	if err := z.Close(); err != nil {
		return err
	}
	r.Body, r.ContentLength = io.NopCloser(&packed), int64(packed.Len())
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Content-Encoding", "gzip")
	return nil
}

func readReply(server string, response *http.Response, text []byte) (reply factsReply, err error) {
	var problem struct {
		Message string `json:"message"`
	}
	_ = json.Unmarshal(text, &problem) // other servers answer otherwise
	said := problem.Message
	if said == "" {
		said = strings.ToValidUTF8(string(text[:min(len(text), 200)]), "?")
	}
	reply.status, reply.said = response.StatusCode, said
	switch response.StatusCode {
	case http.StatusOK, http.StatusAccepted, http.StatusConflict:
		if err := json.Unmarshal(text, &reply.State); err != nil {
			return reply, fault.New(fault.Unavailable, "what %s answers to facts cannot be read: %v", server, err)
		}
		return reply, nil
	case http.StatusNotFound, http.StatusMethodNotAllowed:
		return reply, fault.New(fault.NotFound, "%s takes no facts apart from runs, or knows none of this node: %s", server, said)
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge:
		return reply, fault.New(fault.Invalid, "%s does not take the facts: %s", server, said)
	}
	if seconds, err := strconv.Atoi(response.Header.Get("Retry-After")); err == nil && seconds > 0 {
		reply.after = min(time.Duration(seconds)*time.Second, longestWait)
	}
	return reply, fault.New(fault.Unavailable, "%s answers %s to facts: %s", server, response.Status, said)
}
