package front

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"net"
	"time"

	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/rbac"
)

type requestKey struct{}

// request is what the log says of a request besides its line.
type request struct {
	id       string
	remote   string      // address
	actor    fleet.Actor // who asks, by certificate or token
	recorded bool        // a handler keeps its entry in the audit log
	body     *body       // nil: it has none
}

// of is the request that a context belongs to; nil: it belongs to none.
func of(ctx context.Context) *request {
	req, _ := ctx.Value(requestKey{}).(*request)
	return req
}

// RequestID is the reference that a request has in logs and error answers.
func RequestID(ctx context.Context) string {
	if req := of(ctx); req != nil {
		return req.id
	}
	return ""
}

// NoteActor tells the log who turned out to ask.
func NoteActor(ctx context.Context, actor fleet.Actor) {
	if req := of(ctx); req != nil {
		req.actor = actor
	}
}

// Entry begins an audit entry with what is known of the request. Whoever asks
// for it takes over its recording.
func Entry(ctx context.Context) rbac.Entry {
	entry := rbac.Entry{At: time.Now()}
	if req := of(ctx); req != nil {
		req.recorded = true
		entry.RequestID, entry.Remote = req.id, req.remote
	}
	return entry
}

func newRequestID() string {
	var bits [8]byte
	_, _ = rand.Read(bits[:])
	var text [2 * len(bits)]byte
	hex.Encode(text[:], bits[:])
	return string(text[:])
}

// hostOf is an address without its port.
func hostOf(remote string) string {
	if host, _, err := net.SplitHostPort(remote); err == nil {
		return host
	}
	return remote
}
