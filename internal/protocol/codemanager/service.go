package codemanager

import (
	"context"
	"log/slog"
	"net/http"

	"github.com/tutti-project/tutti/internal/code/source"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/protocol/pejson"
	"github.com/tutti-project/tutti/internal/rbac"
)

// Prefix is where the API begins.
const Prefix = "/code-manager/v1"

// Sources is the git repositories whose branches are environments: source.Service.
type Sources interface {
	Sources() []source.Source
	// Branches lists the branches of a source, or of all, by environment.
	Branches(name string) []source.Branch
	// Environments asks a source's repository which environments its branches would be.
	Environments(ctx context.Context, name string) ([]fleet.Environment, error)
	Hint(name string) error
	Look(ctx context.Context, name string, purge bool) (source.Looked, error)
	Deploy(ctx context.Context, environments []fleet.Environment, by string) ([]source.Branch, error)
	Wait(ctx context.Context, deploys map[fleet.Environment]int64) ([]source.Branch, error)
}

// Config hands in the parts.
type Config struct {
	Sources   Sources
	Actor     func(*http.Request) (fleet.Actor, error) // who asks
	Audit     *rbac.Audit
	Entry     func(context.Context) rbac.Entry // when, from where, under which reference
	RequestID func(context.Context) string
	Log       *slog.Logger
}

// Words of the service.
const (
	invalid         = "invalid-request"
	notPermitted    = "not-permitted"
	conflict        = "conflict"
	internal        = "internal-error"
	unknownType     = "unrecognized-webhook-type"
	deployFailure   = "puppetlabs.code-manager/deploy-failure" // of one environment, in an answer
	maxDeploysBytes = 1 << 20
)

// handler serves the API.
type handler struct {
	Config
	errors *pejson.Service
}

// New returns a handler of what is below Prefix.
func New(c Config) http.Handler {
	h := &handler{Config: c, errors: pejson.New(pejson.Config{
		Prefix: "puppetlabs.code-manager",
		Statuses: map[string]int{
			invalid: http.StatusBadRequest, unknownType: http.StatusBadRequest, notPermitted: http.StatusForbidden, conflict: http.StatusConflict,
			internal: http.StatusInternalServerError,
		},
		Words: map[fault.Kind]string{
			fault.Internal: internal, fault.Invalid: invalid, fault.NotFound: pejson.NotFound, fault.Denied: notPermitted, fault.Conflict: conflict,
		},
		RequestID: c.RequestID, Log: c.Log,
	})}
	return h.errors.Routes(map[string]pejson.Act{
		"POST " + Prefix + "/deploys":       h.deploys,
		"GET " + Prefix + "/deploys/status": h.status,
		"POST " + Prefix + "/webhook":       h.webhook,
	})
}

// MaxBodyBytes is the largest body that is read: a little more than a webhook may have, so that this package refuses it in its own words.
const MaxBodyBytes = maxWebhookBytes + 1<<10

// asked is who asks: by a header or certificate, or by the parameter token, which git servers can be told to send.
func (h *handler) asked(r *http.Request) (*http.Request, fleet.Actor, error) {
	if token := r.URL.Query().Get("token"); token != "" && r.Header.Get("Authorization") == "" && r.Header.Get("X-Authentication") == "" {
		r = r.Clone(r.Context())
		r.Header.Set("X-Authentication", token)
	}
	actor, err := h.Actor(r)
	r = r.WithContext(fleet.WithActor(r.Context(), actor))
	if err == nil && actor.Name == "" {
		err = fault.New(fault.Denied, "no token was shown: send one in the header X-Authentication; `tutti login` and `tutti token create` make them")
	}
	if fault.Is(err, fault.Denied) {
		return r, actor, pejson.Stranger(err)
	}
	return r, actor, err
}

// refused records who was refused, and returns the error.
func (h *handler) refused(r *http.Request, object string, err error) error {
	if fault.Is(pejson.Fault(err), fault.Denied) {
		h.Audit.Refused(r.Context(), h.entry(r, object), pejson.Fault(err))
	}
	return err
}

func (h *handler) entry(r *http.Request, object string) rbac.Entry {
	actor, entry := fleet.ActorFrom(r.Context()), h.Entry(r.Context())
	entry.ActorKind, entry.Actor, entry.Token = actor.Kind, actor.Name, actor.Token
	entry.Operation, entry.Object = r.Method+" "+r.URL.Path, object
	return entry
}

// recorded does an act between the two lines of the audit log.
func (h *handler) recorded(r *http.Request, object string, act func() error) error {
	finish, err := h.Audit.Begin(r.Context(), h.entry(r, object))
	if err != nil {
		return err
	}
	err = act()
	finish(pejson.Fault(err))
	return err
}
