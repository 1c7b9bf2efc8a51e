package node

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/facts"
	"github.com/tutti-project/tutti/internal/facts/factqueue"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// Facts takes what nodes submit; *factqueue.Service is one.
type Facts interface {
	Put(ctx context.Context, set factqueue.Set) (factqueue.Answer, error)
	Patch(ctx context.Context, p factqueue.Patch) (factqueue.Answer, error)
	State(ctx context.Context, node fleet.Certname) (factqueue.Answer, error)
}

// maxReading is how many submissions are read and taken at the same time.
const maxReading = 32

// putFacts takes all facts of a node.
func (h *Handler) putFacts(w http.ResponseWriter, r *http.Request, node fleet.Certname) error {
	return h.submit(w, r, node, true)
}

// patchFacts takes a difference.
func (h *Handler) patchFacts(w http.ResponseWriter, r *http.Request, node fleet.Certname) error {
	return h.submit(w, r, node, false)
}

// getFacts says what the server has of the node's facts.
func (h *Handler) getFacts(w http.ResponseWriter, r *http.Request, node fleet.Certname) error {
	answer, err := h.Facts.State(r.Context(), node)
	if err != nil {
		return err
	}
	return tell(w, http.StatusOK, stateOf(answer, ""))
}

func (h *Handler) submit(w http.ResponseWriter, r *http.Request, node fleet.Certname, whole bool) error {
	if err := h.FactsRate.Allow(string(node), time.Now()); err != nil {
		return err
	}
	if err := h.readingTurn(r.Context()); err != nil {
		return err
	}
	defer h.reading.Release(1)
	body, err := readBody(r, h.MaxFactsBytes)
	if err != nil {
		return err
	}
	sub, err := facts.ParseSubmission(body, whole)
	if err != nil {
		return err
	}
	answer, err := h.take(r.Context(), node, sub, whole)
	if fault.Is(err, fault.Conflict) {
		return h.refuse(w, r, node, err)
	}
	if err != nil {
		return err
	}
	status := http.StatusOK
	if answer.Queued {
		status = http.StatusAccepted
	}
	return tell(w, status, stateOf(answer, sub.Watched))
}

func (h *Handler) take(ctx context.Context, node fleet.Certname, sub facts.Submission, whole bool) (factqueue.Answer, error) {
	set := factqueue.Set{Node: node, Environment: sub.Environment, Number: sub.Number, Timestamp: sub.Timestamp, Values: sub.Values, Arrangement: sub.Arrangement}
	if whole {
		return h.Facts.Put(ctx, set)
	}
	return h.Facts.Patch(ctx, factqueue.Patch{Set: set, Base: sub.Base, Apply: func(base json.RawMessage) (json.RawMessage, error) {
		values, err := sub.Apply(base)
		if err != nil {
			return nil, err
		}
		if _, err := facts.Arranged(values, sub.Arrangement); err != nil {
			return nil, err
		}
		return facts.WithoutTrusted(values)
	}})
}

// refuse tells a node that its submission does not fit, and what would.
func (h *Handler) refuse(w http.ResponseWriter, r *http.Request, node fleet.Certname, cause error) error {
	state, err := h.Facts.State(r.Context(), node)
	if err != nil && fault.Of(err) != fault.NotFound {
		return err
	}
	return tell(w, http.StatusConflict, struct {
		api.Problem
		Number int64        `json:"number"`
		Digest fleet.Digest `json:"digest,omitempty"`
	}{api.Problem{Kind: fault.Conflict.String(), Message: fault.Detail(cause), RequestID: h.RequestID(r.Context())}, state.Number, state.Digest})
}

func stateOf(a factqueue.Answer, has fleet.Digest) facts.State {
	s := facts.State{Number: a.Number, Digest: a.Digest, Queued: a.Queued, Seq: a.Seq, Changed: a.Changed, WatchedDigest: a.WatchedDigest()}
	if s.WatchedDigest != has {
		s.Watched = a.Watched
	}
	return s
}

func tell(w http.ResponseWriter, status int, v any) error {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the caller is gone if this fails
	return nil
}

// readingTurn waits for a place among those whose submissions are taken.
func (h *Handler) readingTurn(ctx context.Context) error {
	waiting, cancel := context.WithTimeout(ctx, turnWait)
	defer cancel()
	if h.reading.Acquire(waiting, 1) == nil {
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return later("%d submissions of facts are being taken", maxReading)
}

// jsonType tells whether a body is said to be JSON.
func jsonType(r *http.Request) bool {
	mime, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	return strings.EqualFold(strings.TrimSpace(mime), "application/json")
}
