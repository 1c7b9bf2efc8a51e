package puppetdb

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/inventory"
	"github.com/tutti-project/tutti/internal/pql"
)

// Version is the version of PuppetDB whose answers are given.
const Version = "7.12.1"

// Config hands in the parts.
type Config struct {
	Asker  inventory.Asker
	Store  Store
	Keeper Keeper
	Now    func() time.Time
	Log    *slog.Logger

	// Bounds of what commands bring, in bytes after decompression.
	MaxFactsBytes, MaxCatalogBytes, MaxReportBytes int64
}

// Handler serves what is below /pdb, and PuppetDB's figures.
type Handler struct {
	Config
	Counts     Counts
	commands   *gate // all that are read or stored
	large      *gate // those of them that are large
	cleaning   sync.Mutex
	population population
	started    time.Time
}

// Counts is how many commands there were since the start.
type Counts struct {
	received, processed, failed atomic.Int64
}

// How many commands are on their way at once. The store commits many together; a
// large body takes a place of both.
const (
	maxCommands = 64
	maxLarge    = 4
)

// New returns a handler. Who may ask, and who may send, is decided before it.
func New(c Config) *Handler {
	return &Handler{Config: c, commands: newGate(maxCommands), large: newGate(maxLarge), started: c.Now()}
}

const (
	queryPrefix = "/pdb/query/v4"
	metaPrefix  = "/pdb/meta/v1/"
)

func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var err error
	switch rest, ok := strings.CutPrefix(r.URL.Path, queryPrefix); {
	case ok && (rest == "" || rest[0] == '/'):
		err = h.query(w, r, strings.Trim(rest, "/"))
	case r.URL.Path == commandPath:
		err = h.command(w, r)
	case r.URL.Path == adminCommandPath:
		err = h.adminCommand(w, r)
	case r.URL.Path == summaryPath:
		err = h.summary(w, r)
	case strings.HasPrefix(r.URL.Path, metricsPrefix):
		err = h.metrics(w, r, strings.TrimPrefix(r.URL.Path, metricsPrefix))
	case strings.HasPrefix(r.URL.Path, metaPrefix):
		err = h.meta(w, strings.TrimPrefix(r.URL.Path, metaPrefix))
	default:
		err = missing{"path", r.URL.Path}
	}
	if err != nil {
		h.fail(w, r, err)
	}
}

func (h *Handler) meta(w http.ResponseWriter, what string) error {
	var answer any
	switch what {
	case "version":
		answer = map[string]string{"version": Version}
	case "version/latest":
		answer = map[string]any{"newer": false, "version": Version, "link": nil}
	case "server-time":
		answer = map[string]string{"server_time": h.Now().UTC().Format("2006-01-02T15:04:05.000Z")}
	default:
		return missing{"path", metaPrefix + what}
	}
	writeJSON(w, http.StatusOK, answer)
	return nil
}

func (h *Handler) query(w http.ResponseWriter, r *http.Request, path string) error {
	if r.Method != http.MethodGet && r.Method != http.MethodPost && r.Method != http.MethodHead {
		return fault.New(fault.Invalid, "PuppetDB queries must be made via GET/POST")
	}
	target, err := locate(path)
	if err != nil {
		return err
	}
	params, err := readParams(r, target)
	if err != nil {
		return err
	}
	// An answer takes no longer than the query may, and a while to read it.
	_ = http.NewResponseController(w).SetWriteDeadline(h.Now().Add(3 * time.Minute))
	if err := h.parents(r.Context(), target); err != nil {
		return err
	}
	if target.counts {
		return h.counts(w, r, target, params)
	}
	q, err := target.question(params)
	if err != nil {
		return err
	}
	if params.astOnly {
		writeText(w, http.StatusOK, "application/json;charset=utf-8", q.Query().AST())
		return nil
	}
	return h.rows(w, r, target, params, q)
}

// parents checks that what the path leads through is there.
func (h *Handler) parents(ctx context.Context, t target) error {
	if t.parent == nil {
		return nil
	}
	found := false
	err := h.Asker.Ask(ctx, inventory.Question{Query: *t.parent, Gone: true}, func(json.RawMessage) error {
		found = true
		return nil
	})
	if err == nil && !found {
		err = missing{t.kind, t.name}
	}
	return err
}

func (h *Handler) rows(w http.ResponseWriter, r *http.Request, t target, params params, q pql.Checked) error {
	out := newStream(w, params.pretty, !t.single)
	question := inventory.Question{Query: q, Gone: t.gone}
	if params.total {
		question.Counted = func(total int64) { w.Header().Set("X-Records", fmt.Sprint(total)) }
	}
	err := h.Asker.Ask(r.Context(), question, func(row json.RawMessage) error {
		if t.pick != nil {
			var err error
			if row, err = t.pick(row); err != nil {
				return err
			}
		}
		return out.add(row)
	})
	if err == nil && t.single && out.count == 0 {
		return missing{t.kind, t.name}
	}
	return h.end(r, out, err)
}

// end closes an answer; a failure after its beginning breaks it off.
func (h *Handler) end(r *http.Request, out *stream, err error) error {
	if err == nil {
		err = out.close()
	}
	if err == nil || !out.begun {
		return err
	}
	if r.Context().Err() == nil {
		h.Log.WarnContext(r.Context(), "a query failed in the middle of its answer", "err", err, "path", r.URL.Path)
	}
	panic(http.ErrAbortHandler)
}

// missing says that one thing is not there.
type missing struct{ kind, name string }

func (m missing) Error() string { return "No information is known about " + m.kind + " " + m.name }

func (h *Handler) fail(w http.ResponseWriter, r *http.Request, err error) {
	if gone, ok := errors.AsType[missing](err); ok {
		writeJSON(w, http.StatusNotFound, map[string]string{"error": gone.Error()})
		return
	}
	if no, ok := errors.AsType[refused](err); ok {
		if no.status == http.StatusUnsupportedMediaType {
			writeText(w, no.status, "text/plain;charset=utf-8", no.text)
			return
		}
		writeJSON(w, no.status, map[string]string{"error": no.text})
		return
	}
	status := http.StatusInternalServerError
	switch fault.Of(err) {
	case fault.Invalid:
		status = http.StatusBadRequest
	case fault.NotFound:
		status = http.StatusNotFound
	case fault.Unavailable:
		status = http.StatusServiceUnavailable
		w.Header().Set("Retry-After", strconv.Itoa(int(cmp.Or(fault.RetryAfter(err), 30*time.Second).Seconds())))
	case fault.Denied:
		status = http.StatusForbidden
	case fault.Internal, fault.Conflict:
		h.Log.ErrorContext(r.Context(), "request failed", "err", err, "path", r.URL.Path)
	}
	if r.URL.Path == commandPath || r.URL.Path == adminCommandPath {
		writeJSON(w, status, map[string]string{"error": wording(err, false)})
		return
	}
	root := strings.Trim(r.URL.Path, "/") == strings.Trim(queryPrefix, "/")
	writeText(w, status, "text/plain;charset=utf-8", wording(err, root))
}

// wording is an error in PuppetDB's words. Only the root address takes PQL.
func wording(err error, root bool) string {
	e, ok := errors.AsType[*pql.Error](err)
	if !ok {
		if detail := fault.Detail(err); detail != "" {
			return detail
		}
		return "An unexpected error occurred while processing the request"
	}
	if !e.Syntax() {
		return e.Detail
	}
	language, hint := "PQL", ""
	list := strings.HasPrefix(strings.TrimSpace(e.Line), "[")
	if !root || list {
		language = "Json"
	}
	if !root && !list {
		hint = "\nHere a query is a JSON array; PQL is answered at " + queryPrefix + "\n"
	}
	return fmt.Sprintf("%s parse error at line %d, column %d:\n\n%s\n\nExpected one of:\n\n%s\n%s",
		language, e.Pos.Line, e.Pos.Column, e.Caret(), strings.Join(e.Expected, "\n"), hint)
}

func writeJSON(w http.ResponseWriter, status int, value any) {
	text, _ := json.MarshalIndent(value, "", "  ") // maps of strings always marshal
	writeText(w, status, "application/json;charset=utf-8", string(text))
}

func writeText(w http.ResponseWriter, status int, contentType, text string) {
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text)) //nolint:gosec // plain text or JSON, and says so; the caller is gone if this fails
}
