package classifier

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/fault"
)

// problem is an error as the classifier's clients know it.
type problem struct {
	status  int
	kind    string
	message string
	details any
}

func (p *problem) Error() string { return p.message }

// statuses is the one table of kinds.
var statuses = map[string]int{
	"malformed-request":       http.StatusBadRequest,
	"malformed-uuid":          http.StatusBadRequest,
	"malformed-number":        http.StatusBadRequest,
	"schema-violation":        http.StatusBadRequest,
	"conflicting-ids":         http.StatusBadRequest,
	"user-unauthenticated":    http.StatusUnauthorized,
	"permission-denied":       http.StatusForbidden,
	"not-found":               http.StatusNotFound,
	"conflict":                http.StatusConflict,
	"uniqueness-violation":    http.StatusUnprocessableEntity,
	"missing-parent":          http.StatusUnprocessableEntity,
	"inheritance-cycle":       http.StatusUnprocessableEntity,
	"unreachable-groups":      http.StatusUnprocessableEntity,
	"children-present":        http.StatusUnprocessableEntity,
	"root-rule-edit":          http.StatusUnprocessableEntity,
	"untranslatable-rule":     http.StatusUnprocessableEntity,
	"classification-conflict": http.StatusInternalServerError,
	"unavailable":             http.StatusServiceUnavailable,
	"application-error":       http.StatusInternalServerError,
}

func bad(kind string, details any, format string, args ...any) error {
	return &problem{status: statuses[kind], kind: kind, message: fmt.Sprintf(format, args...), details: details}
}

// kinds names faults that have no better name.
var kinds = map[fault.Kind]string{
	fault.Internal: "application-error", fault.Invalid: "schema-violation", fault.NotFound: "not-found",
	fault.Denied: "permission-denied", fault.Conflict: "conflict", fault.Unavailable: "unavailable",
}

// fail answers with an error.
func (h *Handler) fail(w http.ResponseWriter, r *http.Request, err error) {
	p, ok := errors.AsType[*problem](err)
	if !ok {
		kind := fault.Of(err)
		p = &problem{status: statuses[kinds[kind]], kind: kinds[kind], message: fault.Detail(err)}
		if kind == fault.Internal && !errors.Is(err, context.Canceled) {
			id := h.RequestID(r.Context())
			h.Log.ErrorContext(r.Context(), "request failed", "err", err, "request_id", id, "path", r.URL.Path)
			p.message = "the server made a mistake; its log names the cause under request " + id
		}
		if after := api.RetrySeconds(err); after > 0 {
			w.Header().Set("Retry-After", strconv.FormatInt(after, 10))
		}
	}
	body := map[string]any{"kind": p.kind, "msg": p.message}
	if p.details != nil {
		body["details"] = p.details
	}
	write(w, p.status, body)
}

func write(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(value) // the caller is gone if this fails
}
