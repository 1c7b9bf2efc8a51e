package pejson

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"strconv"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/fault"
)

// Problem is an error as clients read it.
type Problem struct {
	Status  int
	Kind    string // with the service's prefix
	Message string
	Details any // an object; nil: there are none
}

func (p *Problem) Error() string { return p.Message }

// Service is how one service of Puppet Enterprise names what is wrong.
type Service struct {
	prefix    string
	statuses  map[string]int
	words     map[fault.Kind]string
	sparing   bool
	requestID func(context.Context) string
	log       *slog.Logger
}

// Words of every service, for what is wrong with a request before any route looks at it.
const (
	NotFound         = "not-found"
	MethodNotAllowed = "method-not-allowed"
	NotAcceptable    = "not-acceptable"
	TooLarge         = "payload-too-large"
	UnsupportedType  = "unsupported-type"
	Unavailable      = "unavailable"
	TooManyRequests  = "too-many-requests"
)

// common is the statuses of the words of every service.
var common = map[string]int{
	NotFound:         http.StatusNotFound,
	MethodNotAllowed: http.StatusMethodNotAllowed,
	NotAcceptable:    http.StatusNotAcceptable,
	TooLarge:         http.StatusRequestEntityTooLarge,
	UnsupportedType:  http.StatusUnsupportedMediaType,
	Unavailable:      http.StatusServiceUnavailable,
	TooManyRequests:  http.StatusTooManyRequests,
}

// Config says how a service speaks.
type Config struct {
	Prefix    string                // of its kinds: puppetlabs.orchestrator
	Statuses  map[string]int        // of its words, besides those of every service
	Words     map[fault.Kind]string // what the kinds of fault are called
	Sparing   bool                  // an error without details has no key of that name: a client that decodes a text there could read no object
	RequestID func(context.Context) string
	Log       *slog.Logger
}

// Unauthenticated is the kind of requests whose sender proved nothing. Every service asks RBAC who it is, so the kind is RBAC's.
const Unauthenticated = "puppetlabs.rbac/user-unauthenticated"

// New returns a service. A kind of fault without a word, and a word without a status, is a mistake of the caller: it panics.
func New(c Config) *Service {
	s := &Service{prefix: c.Prefix, statuses: maps.Clone(common), words: map[fault.Kind]string{fault.Unavailable: Unavailable}}
	s.sparing, s.requestID, s.log = c.Sparing, c.RequestID, c.Log
	maps.Copy(s.statuses, c.Statuses)
	maps.Copy(s.words, c.Words)
	for _, kind := range []fault.Kind{fault.Internal, fault.Invalid, fault.NotFound, fault.Denied, fault.Conflict, fault.Unavailable} {
		if s.statuses[s.words[kind]] == 0 {
			panic(fmt.Sprintf("pejson: %s has no word with a status for the fault %s", c.Prefix, kind))
		}
	}
	return s
}

// Bad is an error with one of the service's words.
func (s *Service) Bad(word string, details any, format string, args ...any) error {
	return &Problem{Status: s.statuses[word], Kind: s.prefix + "/" + word, Message: fmt.Sprintf(format, args...), Details: details}
}

// Named is err under one of the service's words: its sentence stays.
func (s *Service) Named(word string, details any, err error) error {
	return s.Bad(word, details, "%s", fault.Detail(err))
}

// Stranger is the error for who proved nothing, with its reason.
func Stranger(err error) error {
	return &Problem{Status: http.StatusUnauthorized, Kind: Unauthenticated, Message: fault.Detail(err)}
}

// Problem is err as clients read it; the log is told of internal ones.
func (s *Service) Problem(r *http.Request, err error) *Problem {
	if p, ok := errors.AsType[*Problem](err); ok {
		return p
	}
	kind := fault.Of(err)
	word := s.words[kind]
	if fault.IsTooOften(err) {
		word = TooManyRequests
	}
	p := &Problem{Status: s.statuses[word], Kind: s.prefix + "/" + word, Message: fault.Detail(err)}
	if kind != fault.Internal {
		return p
	}
	id := s.requestID(r.Context())
	if !errors.Is(err, context.Canceled) {
		s.log.ErrorContext(r.Context(), "request failed", "err", err, "request_id", id, "path", r.URL.Path)
	}
	p.Message = "the server made a mistake; its log names the cause under request " + id
	return p
}

// Fail answers with an error.
func (s *Service) Fail(w http.ResponseWriter, r *http.Request, err error) {
	p := s.Problem(r, err)
	if after := api.RetrySeconds(err); after > 0 {
		w.Header().Set("Retry-After", strconv.FormatInt(after, 10))
	}
	Write(w, p.Status, p.Object(s.sparing))
}

// Object is the error's JSON object; sparing: see Config.
func (p *Problem) Object(sparing bool) any {
	details := p.Details
	if details == nil && !sparing {
		details = struct{}{}
	}
	return struct {
		Kind    string `json:"kind"`
		Message string `json:"msg"`
		Details any    `json:"details,omitempty"`
	}{p.Kind, p.Message, details}
}

// Fault is err for those who know faults only, such as the audit log.
func Fault(err error) error {
	p, ok := errors.AsType[*Problem](err)
	if !ok {
		return err
	}
	switch p.Status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return fault.New(fault.Denied, "%s", p.Message)
	case http.StatusNotFound:
		return fault.New(fault.NotFound, "%s", p.Message)
	case http.StatusConflict:
		return fault.New(fault.Conflict, "%s", p.Message)
	}
	return fault.New(fault.Invalid, "%s", p.Message)
}

// Write answers with JSON.
func Write(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(value) // the caller is gone if this fails
}
