package tls

import (
	"log/slog"
	"strings"
	"sync"
	"time"
)

// refusals are told in the log up to that many times in a minute: strangers can make as many as they like.
const refusalsTold = 20

// handshakeLog is where net/http says which handshakes failed. That a client's certificate does not stand up (it has expired, or comes from another CA)
// crypto/tls finds out by itself, and says nowhere else: an operator has to see it. Everything else is for debugging.
type handshakeLog struct {
	log *slog.Logger
	now func() time.Time

	mu     sync.Mutex
	since  time.Time
	told   int
	untold int
}

// Write implements io.Writer; log.Logger hands over a line at a time.
func (h *handshakeLog) Write(line []byte) (int, error) {
	text := strings.TrimSpace(string(line))
	remote, why, refused := refusedHandshake(text)
	if !refused {
		h.log.Debug(text)
		return len(line), nil
	}
	if untold, tell := h.tells(); tell {
		h.log.Warn("TLS client refused", "remote", remote, "err", why, "untold", untold)
	}
	return len(line), nil
}

// tells says whether one more refusal is told, and how many were not.
func (h *handshakeLog) tells() (untold int, tell bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if now := h.now(); now.Sub(h.since) >= time.Minute {
		h.since, h.told = now, 0
	}
	if h.told >= refusalsTold {
		h.untold++
		return 0, false
	}
	h.told++
	untold, h.untold = h.untold, 0
	return untold, true
}

// refusedHandshake reads what net/http says of a handshake: who is refused for a certificate, and why.
func refusedHandshake(text string) (remote, why string, refused bool) {
	rest, handshake := strings.CutPrefix(text, "http: TLS handshake error from ")
	remote, rest, ok := strings.Cut(rest, ": ")
	_, why, verified := strings.Cut(rest, "tls: failed to verify certificate: ")
	if !handshake || !ok || !verified {
		return "", "", false
	}
	switch {
	case strings.Contains(why, "has expired") && strings.Contains(why, " is after "):
		why = "its certificate has expired: " + why
	case strings.Contains(why, "has expired") && strings.Contains(why, " is before "):
		why = "its certificate is not valid yet, is its clock right? " + why
	case strings.Contains(why, "unknown authority"):
		why = "its certificate comes from another CA: " + why
	}
	return remote, why, true
}
