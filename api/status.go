package api

import (
	"net/http"

	"github.com/tutti-project/tutti/internal/fault"
)

// statuses is the one table from kind to HTTP status.
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
