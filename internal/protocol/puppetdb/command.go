package puppetdb

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory"
)

// commandPath takes commands: what other servers send to be stored.
const commandPath = "/pdb/cmd/v1"

// Store keeps what commands bring. Its methods are those of the inventory's ports.
type Store interface {
	SaveFacts(ctx context.Context, f inventory.FactSet) (inventory.FactSet, []string, error)
	SaveCatalog(ctx context.Context, c inventory.Catalog) error
	SaveCatalogInputs(ctx context.Context, in inventory.CatalogInputs) error
	SaveReport(ctx context.Context, r inventory.Report) error
	DeactivateNode(ctx context.Context, name fleet.Certname, since time.Time) error
	ConfigureExpiration(ctx context.Context, name fleet.Certname, expire bool, at time.Time) error
}

// order is one command as it was sent.
type order struct {
	name     string // with spaces: "replace facts"
	version  int
	certname string // of the address; empty in the old form
	waits    bool   // the sender wants to know what became of it
	payload  string
}

// kind is what there is to know of one kind of command.
type kind struct {
	name           string
	oldest, newest int // versions
	limit          int64
	store          func(ctx context.Context, o order) error
}

// kinds is every command that is understood.
func (h *Handler) kinds() []kind {
	return []kind{
		{"configure expiration", 1, 1, maxWordBytes, h.configureExpiration},
		{"deactivate node", 1, 3, maxWordBytes, h.deactivateNode},
		{"replace catalog", 6, 9, h.MaxCatalogBytes, h.replaceCatalog},
		{"replace catalog inputs", 1, 1, h.MaxFactsBytes, h.replaceInputs},
		{"replace facts", 4, 5, h.MaxFactsBytes, h.replaceFacts},
		{"store report", 5, 8, h.MaxReportBytes, h.storeReport},
	}
}

// maxWordBytes is how long a command may be that only names a node.
const maxWordBytes = 64 << 10

// command stores what a command brings and answers when it is committed: there is
// no queue in which it could be lost, and nothing that fails later.
func (h *Handler) command(w http.ResponseWriter, r *http.Request) error {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		return refused{http.StatusMethodNotAllowed, "commands are sent with POST"}
	}
	var in inside
	defer in.leave()
	if err := in.enter(r.Context(), h.commands); err != nil {
		return err
	}
	o, k, err := h.readOrder(r, &in)
	if err != nil {
		return err
	}
	h.Counts.received.Add(1)
	if err := k.store(r.Context(), o); err != nil {
		h.Counts.failed.Add(1)
		return err
	}
	h.Counts.processed.Add(1)
	answer := map[string]any{"uuid": uuid.NewString()}
	if o.waits {
		answer["processed"], answer["timed_out"] = true, false
	}
	writeJSON(w, http.StatusOK, answer)
	return nil
}

// readOrder reads a command in either form: with its name, version and node in the
// address and the payload as body, or everything in the body.
func (h *Handler) readOrder(r *http.Request, in *inside) (order, kind, error) {
	if media, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";"); media != "" && strings.TrimSpace(media) != "application/json" {
		return order{}, kind{}, refused{http.StatusUnsupportedMediaType, "content type " + clip(media) + " not supported"}
	}
	params := r.URL.Query()
	if !params.Has("command") {
		return h.readOldOrder(r, params, in)
	}
	o, err := addressed(params)
	if err != nil {
		return o, kind{}, err
	}
	k, err := h.find(o)
	if err != nil {
		return o, k, err
	}
	o.payload, err = h.readBody(r, k.limit, in)
	return o, k, err
}

// addressed reads the address of a command. A checksum is of no use: TLS has one.
func addressed(params url.Values) (order, error) {
	o := order{name: spaced(params.Get("command")), certname: params.Get("certname")}
	bad := func(format string, args ...any) (order, error) {
		return o, fault.New(fault.Invalid, "Command %q for certname %q is invalid. "+format, append([]any{clip(o.name), clip(o.certname)}, args...)...)
	}
	known := []string{"checksum", "secondsToWaitForCompletion", "certname", "command", "version", "producer-timestamp"}
	for name := range params {
		if !slices.Contains(known, name) {
			return bad("Command has invalid parameters: %s.", clip(name))
		}
	}
	for _, name := range []string{"certname", "version", "command"} {
		if !params.Has(name) {
			return bad("Command is missing required parameters: %s.", name)
		}
	}
	if strings.TrimSpace(o.certname) == "" {
		return bad("Certname must be a non-empty string.")
	}
	var err error
	if o.version, err = strconv.Atoi(params.Get("version")); err != nil {
		return bad("Version must be a valid integer.")
	}
	if o.waits, err = waits(params); err != nil {
		return o, err
	}
	return o, nil
}

func waits(params url.Values) (bool, error) {
	text := params.Get("secondsToWaitForCompletion")
	if text == "" {
		return false, nil
	}
	seconds, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return false, fault.New(fault.Invalid, "secondsToWaitForCompletion is %q, not a number of seconds", clip(text))
	}
	return seconds > 0, nil
}

// spaced is the name of a command as the table has it.
func spaced(name string) string { return strings.ReplaceAll(name, "_", " ") }

func clip(text string) string { return text[:min(len(text), 200)] }

// find looks a command up.
func (h *Handler) find(o order) (kind, error) {
	bad := func(format string, args ...any) (kind, error) {
		return kind{}, fault.New(fault.Invalid, "Command %q for certname %q is invalid. "+format, append([]any{clip(o.name), clip(o.certname)}, args...)...)
	}
	all := h.kinds()
	i := slices.IndexFunc(all, func(k kind) bool { return k.name == o.name })
	if i < 0 {
		names := make([]string, len(all))
		for i, k := range all {
			names[i] = k.name
		}
		return bad("Command must be one of: %s.", strings.Join(names, ", "))
	}
	switch k := all[i]; {
	case o.version < k.oldest:
		return bad("Version %d of command %q is retired. The minimum supported version is %d.", o.version, k.name, k.oldest)
	case o.version > k.newest:
		return bad("Version %d of command %q is not known here. The newest is %d.", o.version, k.name, k.newest)
	default:
		return k, nil
	}
}
