package orchestrator

import (
	"net/http"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/job/submit"
)

// The words of the service.
const (
	validationError     = "validation-error"
	emptyEnvironment    = "empty-environment"
	emptyTarget         = "empty-target"
	dependencyCycle     = "dependency-cycle"
	queryError          = "query-error"
	invalidTime         = "invalid-time"
	disabledSchedule    = "disabled-scheduled-job"
	planOver            = "plan-already-finished"
	notPermitted        = "not-permitted"
	unknownEnvironment  = "unknown-environment"
	unknownJob          = "unknown-job"
	unknownTask         = "unknown-task"
	unknownPlan         = "unknown-plan"
	unknownTarget       = "unknown-task-target"
	unknownScheduledJob = "unknown-scheduled-job"
	mismatchedEvent     = "mismatched-job-event-id"
	unknownError        = "unknown-error"
	conflict            = "conflict"
	executionFailure    = "execution-failure" // of a node, never of a request
)

// statuses is the one table of words.
func statuses() map[string]int {
	return map[string]int{
		validationError:     http.StatusBadRequest,
		emptyEnvironment:    http.StatusBadRequest,
		emptyTarget:         http.StatusBadRequest,
		dependencyCycle:     http.StatusBadRequest,
		queryError:          http.StatusBadRequest,
		invalidTime:         http.StatusBadRequest,
		disabledSchedule:    http.StatusBadRequest,
		planOver:            http.StatusBadRequest,
		notPermitted:        http.StatusForbidden,
		unknownEnvironment:  http.StatusNotFound,
		unknownJob:          http.StatusNotFound,
		unknownTask:         http.StatusNotFound,
		unknownPlan:         http.StatusNotFound,
		unknownTarget:       http.StatusNotFound,
		unknownScheduledJob: http.StatusNotFound,
		mismatchedEvent:     http.StatusNotFound,
		conflict:            http.StatusConflict,
		unknownError:        http.StatusInternalServerError,
	}
}

// faults is what kinds of fault are called that have no better word.
func faults() map[fault.Kind]string {
	return map[fault.Kind]string{
		fault.Internal: unknownError, fault.Invalid: validationError, fault.NotFound: unknownError404, fault.Denied: notPermitted, fault.Conflict: conflict,
	}
}

// unknownError404 is for what is not there and has no kind of its own.
const unknownError404 = "not-found"

// words is what refusals of orders are called.
var words = map[submit.Word]string{
	submit.UnknownEnvironment: unknownEnvironment,
	submit.UnknownTask:        unknownTask,
	submit.Malformed:          validationError,
	submit.Circle:             dependencyCycle,
	submit.NotAllowed:         notPermitted,
}

// bad is an error with a word of this service.
func (h *Handler) bad(word string, details any, format string, args ...any) error {
	return h.service.Bad(word, details, format, args...)
}

// invalid names the field of a body or query that cannot be.
func (h *Handler) invalid(field, format string, args ...any) error {
	return h.bad(validationError, map[string]string{"field": field}, "field "+field+": "+format, args...)
}

// refused is why an order was not taken. What cannot be found has the word of how it was named.
func (h *Handler) refused(err error, o submit.Order) error {
	word := submit.WordOf(err)
	details := map[string]string{}
	if o.Task != nil {
		details["task"] = o.Task.Name
	}
	if env := string(o.Spec.Environment) + string(o.Whole); env != "" {
		details["environment"] = env
	}
	switch {
	case word == "":
		return err
	case word == submit.Unresolved && o.Spec.Targets.Query != "":
		return h.service.Named(queryError, map[string]string{"query": o.Spec.Targets.Query}, err)
	case word == submit.Unresolved:
		return h.service.Named(emptyTarget, details, err)
	case word == submit.Nobody && o.Whole != "":
		return h.service.Named(emptyEnvironment, map[string]string{"environment": string(o.Whole)}, err)
	case word == submit.Nobody:
		return h.service.Named(emptyTarget, details, err)
	}
	return h.service.Named(words[word], details, err)
}

// missing gives NotFound the word of what is missing.
func (h *Handler) missing(word string, details any, err error) error {
	if fault.Is(err, fault.NotFound) {
		return h.service.Named(word, details, err)
	}
	return err
}
