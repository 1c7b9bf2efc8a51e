package httpapi

import (
	"net/http"
	"strings"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// Actor is who asks; the access log is told.
func (h *Handler) Actor(r *http.Request) (fleet.Actor, error) {
	actor, err := h.shown(r)
	h.NoteActor(r.Context(), actor)
	return actor, err
}

// shown is who the request says it is from: the bearer of a token if one is
// shown, else whom the connection's certificate names. A wrong token is refused
// even when the certificate would do: the caller meant to be somebody. Other
// schemes of authorization mean nothing beside a certificate: clients of PuppetDB,
// which knows none, send "Basic" without a name.
func (h *Handler) shown(r *http.Request) (fleet.Actor, error) {
	header := r.Header.Get("Authorization")
	if token := strings.TrimSpace(r.Header.Get("X-Authentication")); header == "" && token != "" { // as clients of Puppet Enterprise do
		header = "Bearer " + token
	}
	if header == "" {
		return fleet.ActorFrom(r.Context()), nil
	}
	text, ok := strings.CutPrefix(header, "Bearer ")
	if certified := fleet.ActorFrom(r.Context()); !ok && certified.Name != "" {
		return certified, nil
	}
	if !ok {
		return fleet.Actor{}, fault.New(fault.Denied, "the Authorization header must be: Bearer TOKEN")
	}
	token, err := h.Tokens.AccessToken(r.Context(), fleet.DigestOf([]byte(text)))
	if fault.Of(err) == fault.NotFound && err != nil || err == nil && !token.ExpiresAt.IsZero() && time.Now().After(token.ExpiresAt) {
		return fleet.Actor{}, fault.New(fault.Denied, "the token is not known here, or it has expired")
	}
	if err != nil {
		return fleet.Actor{}, err
	}
	return fleet.Actor{Kind: fleet.TokenUser, Name: token.Label, Admin: token.Admin}, nil
}

// AdminOnly lets administrators through to a handler that is no operation, such
// as the metrics.
func (h *Handler) AdminOnly(next http.Handler) http.Handler {
	return h.AdminOr("", func(fleet.Actor) bool { return false }, next)
}

// AdminOr lets administrators through, and others whom a setting names.
func (h *Handler) AdminOr(setting string, named func(fleet.Actor) bool, next http.Handler) http.Handler {
	others := ""
	if setting != "" {
		others = " and for certificates that the setting " + setting + " names"
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		actor, err := h.Actor(r)
		if err == nil && !actor.Admin && !named(actor) {
			err = fault.New(fault.Denied, "%s is for administrators%s: show a token or certificate of one", r.URL.Path, others)
		}
		if err != nil {
			h.problem(w, r, err)
			return
		}
		next.ServeHTTP(w, r)
	})
}
