package api

import (
	"net/http"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
)

// statuses is the one table from kind to HTTP status, for every HTTP API.
var statuses = map[fault.Kind]int{
	fault.Internal:    http.StatusInternalServerError,
	fault.Invalid:     http.StatusBadRequest,
	fault.NotFound:    http.StatusNotFound,
	fault.Denied:      http.StatusForbidden,
	fault.Conflict:    http.StatusConflict,
	fault.Unavailable: http.StatusServiceUnavailable,
}

// Status is the HTTP status of a kind.
func Status(kind fault.Kind) int {
	if status, ok := statuses[kind]; ok {
		return status
	}
	return http.StatusInternalServerError
}

// StatusOf is the HTTP status of an error: that of its kind, and 429 where the caller itself is
// the reason for an Unavailable one.
func StatusOf(err error) int {
	if fault.IsTooOften(err) {
		return http.StatusTooManyRequests
	}
	return Status(fault.Of(err))
}

// RetrySeconds is the value of Retry-After for err: whole seconds, and not sooner
// than err says; zero when it does not say.
func RetrySeconds(err error) int64 { return WholeSeconds(fault.RetryAfter(err)) }

// WholeSeconds rounds up.
func WholeSeconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }
