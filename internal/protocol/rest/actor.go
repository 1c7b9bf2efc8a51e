package rest

import (
	"context"
	"net/http"
	"strings"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// Actor is who asks; the access log is told.
func (h *Handler) Actor(r *http.Request) (fleet.Actor, error) {
	actor, err := h.gate.shown(r)
	if err != nil {
		actor = fleet.Actor{Kind: fleet.Anonymous}
	}
	h.noteActor(r.Context(), actor)
	h.recorder.noteBreakGlass(r.Context(), actor)
	return actor, err
}

// identify puts who asks into the request's context.
func (h *Handler) identify(r *http.Request) (*http.Request, error) {
	actor, err := h.Actor(r)
	ctx := context.WithValue(r.Context(), connectionKey{}, certified(r))
	return r.WithContext(fleet.WithActor(ctx, actor)), err
}

type connectionKey struct{}

// certified is whom the connection's certificate names, without the roles that its name was given: also of a
// request that was identified, so that it can be asked again.
func certified(r *http.Request) fleet.Actor {
	if actor, ok := r.Context().Value(connectionKey{}).(fleet.Actor); ok {
		return actor
	}
	return fleet.ActorFrom(r.Context())
}

// shown is who the request says it is from: the bearer of a token if one is
// shown, else whom the connection's certificate names. A wrong token is refused
// even when the certificate would do: the caller meant to be somebody. Other
// schemes of authorization mean nothing beside a certificate: clients of PuppetDB,
// which knows none, send "Basic" without a name.
func (h *gate) shown(r *http.Request) (fleet.Actor, error) {
	certified := certified(r)
	header := r.Header.Get("Authorization")
	scheme, text, _ := strings.Cut(header, " ")
	bearer := strings.EqualFold(scheme, "Bearer") && len(scheme) < len(header)
	switch {
	case bearer:
		return h.access.Bearer(r.Context(), text)
	case header != "" && certified.Name == "":
		return fleet.Actor{}, fault.New(fault.Denied, "the Authorization header must be: Bearer TOKEN")
	case header == "" && strings.TrimSpace(r.Header.Get("X-Authentication")) != "": // as clients of Puppet Enterprise send it
		return h.access.Bearer(r.Context(), r.Header.Get("X-Authentication"))
	}
	return h.access.Certificate(r.Context(), certified)
}

// Identify lets handlers of other protocols know who asks by token or by roles of
// a certificate, as operations do.
func (h *Handler) Identify(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r, err := h.identify(r)
		if err != nil {
			h.recorder.refuse(r.Context(), routeOf(r), r.URL.Path, err) //nolint:contextcheck // the request carries it
			h.problems.problem(w, r, err)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// Require lets those with the permission through to a handler that is no
// operation, such as the metrics.
func (h *Handler) Require(permission fleet.Permission, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r, err := h.identify(r)
		if err == nil {
			err = h.gate.allow(r.Context(), permission, fleet.Object{}) //nolint:contextcheck // the request carries it
		}
		if err != nil {
			h.recorder.refuse(r.Context(), routeOf(r), r.URL.Path, err) //nolint:contextcheck // the request carries it
			h.problems.problem(w, r, err)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// Perform is Require for a handler whose requests are acts, other than GET: each is
// recorded before it is done, and its outcome after it.
func (h *Handler) Perform(permission fleet.Permission, next http.Handler) http.Handler {
	return h.Require(permission, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			next.ServeHTTP(w, r)
			return
		}
		finish, err := h.recorder.audit.Begin(r.Context(), h.recorder.entry(r.Context(), routeOf(r), r.URL.Path))
		if err != nil {
			h.problems.problem(w, r, err)
			return
		}
		seen := &watched{ResponseWriter: w, status: http.StatusOK}
		next.ServeHTTP(seen, r)
		if seen.status >= http.StatusBadRequest {
			finish(fault.New(fault.Invalid, "answered with status %d", seen.status))
			return
		}
		finish(nil)
	}))
}

// watched remembers how a request was answered.
type watched struct {
	http.ResponseWriter
	status int
}

func (w *watched) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap lets http.ResponseController reach the real writer.
func (w *watched) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// routeOf names what is no operation in the audit log: METHOD /path/.
func routeOf(r *http.Request) string {
	_, path, ok := strings.Cut(r.Pattern, " ")
	if !ok {
		path = r.Pattern
	}
	return r.Method + " " + path
}
