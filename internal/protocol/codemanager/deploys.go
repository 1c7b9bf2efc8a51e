package codemanager

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tutti-project/tutti/internal/code/source"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/protocol/pejson"
	"github.com/tutti-project/tutti/internal/rbac"
)

// order is the body of a request for deploys.
type order struct {
	Environments  []string `json:"environments"`
	All           bool     `json:"deploy-all"`
	Wait          bool     `json:"wait"`
	DryRun        bool     `json:"dry-run"`
	DeployModules *bool    `json:"deploy-modules"`
	Modules       []string `json:"modules"`
}

// maxEnvironments is how many environments one request may name.
const maxEnvironments = 1000

// problem is why an environment was not deployed.
type problem struct {
	Kind    string            `json:"kind"`
	Message string            `json:"msg"`
	Details map[string]string `json:"details"`
}

// deployed is one environment of an answer.
type deployed struct {
	Environment string   `json:"environment"`
	ID          int64    `json:"id,omitempty"`
	Status      string   `json:"status"`
	Signature   string   `json:"deploy-signature,omitempty"`
	FileSync    *synced  `json:"file-sync,omitempty"`
	Error       *problem `json:"error,omitempty"`
}

type synced struct {
	Environment string `json:"environment-commit"`
	Code        string `json:"code-commit"`
}

func (h *handler) deploys(w http.ResponseWriter, r *http.Request) error {
	r, actor, err := h.asked(r)
	if err == nil {
		err = rbac.AllowSome(actor, fleet.CodeDeploy)
	}
	if err != nil {
		return h.refused(r, "", err)
	}
	var o order
	if err := h.errors.Read(w, r, maxDeploysBytes, invalid, &o); err != nil {
		return err
	}
	environments, err := h.meant(actor, o)
	if err != nil {
		return h.refused(r, strings.Join(o.Environments, " "), err)
	}
	if o.DryRun {
		return h.dryRun(w, r, actor, environments, o.All)
	}
	return h.recorded(r, strings.Join(o.Environments, " "), func() error {
		answer, err := h.deploy(r.Context(), actor, environments, o)
		if err == nil {
			pejson.Write(w, http.StatusOK, answer)
		}
		return err
	})
}

// meant is the environments that a request names, each of which the caller may deploy.
func (h *handler) meant(actor fleet.Actor, o order) (environments []fleet.Environment, err error) {
	switch {
	case o.All && len(o.Environments) > 0:
		return nil, h.errors.Bad(invalid, nil, "environments are named, and deploy-all is true: give one of both")
	case !o.All && !o.DryRun && len(o.Environments) == 0:
		return nil, h.errors.Bad(invalid, nil, "the body must name environments, or have deploy-all true")
	case len(o.Environments) > maxEnvironments:
		return nil, h.errors.Bad(invalid, nil, "%d environments are named, at most %d are allowed", len(o.Environments), maxEnvironments)
	case len(o.Modules) > 0:
		return nil, h.errors.Bad(invalid, nil, "single modules cannot be deployed: a version holds all of its environment; leave modules out")
	case o.DeployModules != nil && !*o.DeployModules:
		return nil, h.errors.Bad(invalid, nil, "an environment cannot be deployed without its modules: leave deploy-modules out")
	}
	for _, name := range o.Environments {
		env, err := fleet.ParseEnvironment(name)
		if err != nil {
			return nil, err
		}
		if err := rbac.Allow(actor, fleet.CodeDeploy, fleet.Object{Environment: env}); err != nil {
			return nil, err
		}
		if !slices.Contains(environments, env) {
			environments = append(environments, env)
		}
	}
	return environments, nil
}

// deploy asks for deploys. A branch that nobody heard of yet may be there: then the repositories are looked at first.
func (h *handler) deploy(ctx context.Context, actor fleet.Actor, environments []fleet.Environment, o order) ([]deployed, error) {
	var unseen error
	known := h.known()
	if o.All || slices.ContainsFunc(environments, func(env fleet.Environment) bool { return !slices.Contains(known, env) }) {
		unseen = h.look(ctx)
		known = h.known()
	}
	if o.All {
		environments = nil
		for _, env := range known {
			if rbac.Allow(actor, fleet.CodeDeploy, fleet.Object{Environment: env}) == nil {
				environments = append(environments, env)
			}
		}
		if len(environments) == 0 && unseen != nil {
			return nil, unseen
		}
	}
	answer, there := []deployed{}, []fleet.Environment{}
	for _, env := range environments {
		if slices.Contains(known, env) {
			there = append(there, env)
			continue
		}
		why := "no source has a branch for the environment " + string(env)
		if unseen != nil {
			why += ", as far as is known: " + fault.Detail(unseen)
		}
		answer = append(answer, failed(source.Branch{Environment: env, Error: why}))
	}
	asked, err := h.Sources.Deploy(ctx, there, actor.Name)
	if err != nil {
		return nil, err
	}
	if !o.Wait {
		for _, b := range asked {
			answer = append(answer, deployed{Environment: string(b.Environment), ID: max(b.ID, b.NextID), Status: "queued"})
		}
		return answer, nil
	}
	numbers := map[fleet.Environment]int64{}
	for _, b := range asked {
		numbers[b.Environment] = max(b.ID, b.NextID)
	}
	ended, err := h.Sources.Wait(ctx, numbers)
	for _, b := range ended {
		if b.State == source.Failed {
			answer = append(answer, failed(b))
			continue
		}
		answer = append(answer, deployed{
			Environment: string(b.Environment), ID: numbers[b.Environment], Status: "complete", Signature: b.Commit,
			FileSync: &synced{string(b.Version), string(b.Version)},
		})
	}
	return answer, err
}

func failed(b source.Branch) deployed {
	return deployed{
		Environment: string(b.Environment), ID: b.ID, Status: "failed",
		Error: &problem{deployFailure, b.Error, map[string]string{"corrected-env-name": string(b.Environment)}},
	}
}

func (h *handler) known() (environments []fleet.Environment) {
	for _, b := range h.Sources.Branches("") {
		environments = append(environments, b.Environment)
	}
	return environments
}

// look looks at all repositories, and returns why one of them could not be looked at; the log names each.
func (h *handler) look(ctx context.Context) (unseen error) {
	for _, s := range h.Sources.Sources() {
		if _, err := h.Sources.Look(ctx, s.Name, false); err != nil {
			h.Log.WarnContext(ctx, "a source could not be looked at", "source", s.Name, "err", err)
			unseen = ofSource(s, err)
		}
	}
	return unseen
}

func ofSource(s source.Source, err error) error {
	return fault.Wrap(fault.Of(err), err, "source %s: %s", s.Name, fault.Detail(err))
}

// dryRun asks the repositories which environments there are, and deploys none.
func (h *handler) dryRun(w http.ResponseWriter, r *http.Request, actor fleet.Actor, wanted []fleet.Environment, all bool) error {
	answer := []deployed{}
	for _, s := range h.Sources.Sources() {
		environments, err := h.Sources.Environments(r.Context(), s.Name)
		if err != nil {
			return ofSource(s, err)
		}
		for _, env := range environments {
			if all || len(wanted) == 0 || slices.Contains(wanted, env) {
				if rbac.Allow(actor, fleet.CodeDeploy, fleet.Object{Environment: env}) == nil {
					answer = append(answer, deployed{Environment: string(env), Status: "new"})
				}
			}
		}
	}
	pejson.Write(w, http.StatusOK, answer)
	return nil
}

// standing is an environment in the answer about the state of deploys.
type standing struct {
	Environment string   `json:"environment"`
	ID          int64    `json:"id,omitempty"`
	QueuedAt    string   `json:"queued-at,omitempty"`
	Date        string   `json:"date,omitempty"`
	Signature   string   `json:"deploy-signature,omitempty"`
	Error       *problem `json:"error,omitempty"`
}

func (h *handler) status(w http.ResponseWriter, r *http.Request) error {
	r, actor, err := h.asked(r)
	if err == nil {
		err = rbac.AllowSome(actor, fleet.CodeRead)
	}
	if err != nil {
		return h.refused(r, "", err)
	}
	only := int64(0)
	if text := r.URL.Query().Get("id"); text != "" {
		if only, err = strconv.ParseInt(text, 10, 64); err != nil || only <= 0 {
			return h.errors.Bad(invalid, map[string]string{"id": text}, "the parameter id must be the number of a deploy, not %.40q", text)
		}
	}
	states := map[string][]standing{"new": {}, "queued": {}, "deploying": {}, "failed": {}}
	there := []standing{}
	for _, b := range h.Sources.Branches("") {
		if rbac.Allow(actor, fleet.CodeRead, fleet.Object{Environment: b.Environment}) != nil {
			continue
		}
		add(states, b, only)
		if b.Commit != "" {
			there = append(there, standing{Environment: string(b.Environment), Date: b.DeployedAt.UTC().Format(time.RFC3339), Signature: b.Commit})
		}
	}
	pejson.Write(w, http.StatusOK, map[string]any{
		"deploys-status":           states,
		"file-sync-storage-status": map[string]any{"deployed": there},
		// Code is not copied to compilers that ask for it now and then: the server compiles, and has it.
		"file-sync-client-status": map[string]any{"all-synced": true, "file-sync-clients": map[string]any{}},
	})
	return nil
}

// add adds the deploys of a branch that have not ended well; only: of this number, if it is not 0.
func add(states map[string][]standing, b source.Branch, only int64) {
	one := standing{Environment: string(b.Environment), ID: b.ID, QueuedAt: b.Queued.UTC().Format(time.RFC3339)}
	if b.State == source.Failed {
		one.Error = failed(b).Error
	}
	if state := string(b.State); states[state] != nil && (only == 0 || only == b.ID) {
		states[state] = append(states[state], one)
	}
	if b.NextID != 0 && (only == 0 || only == b.NextID) {
		states["queued"] = append(states["queued"], standing{Environment: one.Environment, ID: b.NextID, QueuedAt: one.QueuedAt})
	}
}
