package rest

import (
	"archive/tar"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/cas"
	"github.com/tutti-project/tutti/internal/code"
	"github.com/tutti-project/tutti/internal/codecheck"
	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// Code is what the operations need of the environments' code.
type Code interface {
	// Deploy makes a version an environment's, unless it has mistakes. The report is nil if it was not checked.
	Deploy(ctx context.Context, d code.Deployment, mode codecheck.Mode) (code.Version, *codecheck.Report, error)
	// Inspect reads the files of a version that is not deployed.
	Inspect(ctx context.Context, env fleet.Environment, version fleet.Digest) (codecheck.Report, error)
	// Found is what was found in a version before it was deployed; nil if it was not checked.
	Found(ctx context.Context, env fleet.Environment, version fleet.Digest) (*codecheck.Report, error)
	Stage(ctx context.Context, d code.Deployment) (code.Version, error)
	// Manifest lists what is in a version. The caller changes none of its lists.
	Manifest(ctx context.Context, env fleet.Environment, version fleet.Digest) (code.Manifest, error)
	Environments(ctx context.Context) ([]code.Version, error)
	Versions(ctx context.Context, env fleet.Environment, limit int) ([]code.Version, error)
	RemoveEnvironment(ctx context.Context, env fleet.Environment) error
	// Status says how nodes stand to an environment's current version.
	Status(ctx context.Context, env fleet.Environment) (code.Version, compile.CodeStatus, error)
}

// Engines is what is known of the Puppet installations that can compile.
type Engines interface {
	// Engines lists them, the default first, without environments.
	Engines() []api.Engine
}

// versions answers the operations of environments, their versions, and the blobs that those are made of.
type versions struct {
	gate         *gate
	code         Code
	engines      Engines
	blobs        cas.Store
	compilations *compilations
	deliveries   *deliveries
	selector     *selector
}

func (h *versions) bindings() []binding {
	return []binding{
		each(answer(api.EnvironmentList, h.listEnvironments)),
		answer(api.EnvironmentDelete, h.deleteEnvironment),
		answer(api.VersionList, h.listVersions),
		answer(api.EnvironmentStatus, h.environmentStatus),
		answer(api.VersionSpread, h.spreadVersions),
		answer(api.VersionLines, h.versionLines),
		answer(api.VersionDeploy, h.deployVersion),
		each(answer(api.EngineList, h.listEngines)),
		when(h.gate.allowBlobs, answer(api.BlobMissing, h.missingBlobs)),
		when(h.gate.allowBlobs, raw(api.BlobUpload, h.uploadBlobs)),
	}
}

func (h *versions) listEnvironments(ctx context.Context, _ api.Nothing) (api.List[api.Version], error) {
	versions, err := h.code.Environments(ctx)
	if err != nil {
		return api.List[api.Version]{}, err
	}
	versions, err = seen(ctx, h.gate, fleet.CodeRead, versions, func(v code.Version) fleet.Object {
		return fleet.Object{Environment: v.Environment}
	})
	return versionList(versions), err
}

// maxVersions is how far back a list of versions goes.
const maxVersions = 1000

func (h *versions) listVersions(ctx context.Context, request api.EnvironmentRequest) (api.List[api.Version], error) {
	env, err := fleet.ParseEnvironment(request.Environment)
	if err != nil {
		return api.List[api.Version]{}, err
	}
	versions, err := h.code.Versions(ctx, env, maxVersions)
	if err == nil && len(versions) == 0 {
		err = fault.New(fault.NotFound, "nothing was ever deployed to environment %s", env)
	}
	return versionList(versions), err
}

func versionList(versions []code.Version) api.List[api.Version] {
	list := api.List[api.Version]{Items: make([]api.Version, len(versions))}
	for i, v := range versions {
		list.Items[i] = versionOf(v)
	}
	return list
}

func (h *versions) listEngines(ctx context.Context, _ api.Nothing) (api.List[api.Engine], error) {
	list := api.List[api.Engine]{Items: h.engines.Engines()}
	current, err := h.listEnvironments(ctx, api.Nothing{})
	if err != nil {
		return list, err
	}
	for i := range list.Items {
		list.Items[i].Environments = []string{}
	}
	for _, v := range current.Items {
		i := slices.IndexFunc(list.Items, func(e api.Engine) bool { return v.Engine == e.Name || v.Engine == "" && e.Default })
		if i < 0 {
			i = len(list.Items)
			list.Items = append(list.Items, api.Engine{Name: v.Engine, Trouble: "there is no engine of this name on this server"})
		}
		list.Items[i].Environments = append(list.Items[i].Environments, v.Environment)
	}
	return list, nil
}

func versionOf(v code.Version) api.Version {
	return api.Version{
		Environment: string(v.Environment), ID: string(v.ID), Commit: v.Commit, Origin: v.Origin, Actor: v.Actor,
		Files: v.Files, Bytes: v.Bytes, Engine: v.Engine, DeployedAt: v.DeployedAt.UTC(),
	}
}

func (h *versions) deleteEnvironment(ctx context.Context, request api.EnvironmentRequest) (api.Nothing, error) {
	env, err := fleet.ParseEnvironment(request.Environment)
	if err != nil {
		return api.Nothing{}, err
	}
	return api.Nothing{}, h.code.RemoveEnvironment(ctx, env)
}

func (h *versions) deployVersion(ctx context.Context, request api.DeployRequest) (api.Deployed, error) {
	env, err := fleet.ParseEnvironment(request.Environment)
	if err != nil {
		return api.Deployed{}, err
	}
	mode, err := codecheck.ParseMode(request.Check)
	if err != nil {
		return api.Deployed{}, err
	}
	manifest, err := code.ParseManifest(request.Manifest)
	if err != nil {
		return api.Deployed{}, err
	}
	version, report, err := h.code.Deploy(ctx, code.Deployment{
		Environment: env, Manifest: manifest, Commit: request.Commit, Origin: request.Origin,
		Actor: fleet.ActorFrom(ctx).Name, At: time.Now(),
	}, mode)
	return api.Deployed{Version: versionOf(version), NewEnvironment: version.First, Check: checkOf(report)}, err
}

// checkOf is a report as the API shows it; nil for none.
func checkOf(r *codecheck.Report) *api.CodeCheck {
	if r == nil {
		return nil
	}
	shown := &api.CodeCheck{
		Version: string(r.Version), Base: string(r.Base), At: r.At.UTC(), Seconds: r.Took.Seconds(), Files: r.Files, Sets: r.Sets, Compiled: r.Compiled,
		More: r.More, Unread: r.Unread, Forced: r.Forced, Mistakes: r.Count(codecheck.Mistake), Warnings: r.Count(codecheck.Warning), Cut: r.Cut,
		Findings: make([]api.CodeFinding, len(r.Findings)),
	}
	for i, f := range r.Findings {
		shown.Findings[i] = api.CodeFinding{Level: string(f.Level), File: f.File, Line: f.Line, Column: f.Column, Message: f.Message, New: f.New, Alike: f.Alike}
		if f.New {
			shown.New++
		}
		for _, node := range f.Nodes {
			shown.Findings[i].Nodes = append(shown.Findings[i].Nodes, string(node))
		}
	}
	return shown
}

// maxDigests is how many digests one blob.missing may name.
const maxDigests = 10_000

func (h *versions) missingBlobs(ctx context.Context, request api.BlobMissingRequest) (api.BlobMissingResponse, error) {
	answer := api.BlobMissingResponse{Missing: []string{}}
	if len(request.Digests) > maxDigests {
		return answer, fault.New(fault.Invalid, "digests holds %d entries, at most %d are allowed in one call", len(request.Digests), maxDigests)
	}
	digests := make([]fleet.Digest, len(request.Digests))
	for i, text := range request.Digests {
		digest, err := fleet.ParseDigest(text)
		if err != nil {
			return answer, err
		}
		digests[i] = digest
	}
	missing, err := h.blobs.Missing(ctx, digests)
	for _, digest := range missing {
		answer.Missing = append(answer.Missing, string(digest))
	}
	return answer, err
}

// maxUploadBlobs bounds one upload; a larger one is sent in parts.
const maxUploadBlobs = 20_000

// uploadBlobs stores every entry of a tar archive under the digest it is named by.
func (h *versions) uploadBlobs(_ http.ResponseWriter, r *http.Request, begin func(any) error) (any, error) {
	if err := begin(nil); err != nil {
		return nil, err
	}
	u := upload{archive: tar.NewReader(r.Body)}
	err := cas.PutAll(r.Context(), h.blobs, u.entries)
	if u.err != nil { // the store may not have noticed
		err = u.err
	}
	return u.stored, err
}

// upload is a tar archive on its way into the store.
type upload struct {
	archive *tar.Reader
	stored  api.BlobUploadResponse
	err     error // why the entries ended early
}

// entries goes through the archive; an entry can be opened until the next one.
func (u *upload) entries(yield func(cas.Source) bool) {
	for {
		source, size, err := u.next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			u.err = err
			return
		}
		if !yield(source) {
			return
		}
		u.stored.Blobs, u.stored.Bytes = u.stored.Blobs+1, u.stored.Bytes+size
	}
}

func (u *upload) next() (cas.Source, int64, error) {
	entry, err := u.archive.Next()
	if errors.Is(err, io.EOF) {
		return cas.Source{}, 0, io.EOF
	}
	if err != nil {
		return cas.Source{}, 0, fault.New(fault.Invalid, "the body is not the tar archive that is expected: %v", err)
	}
	digest, err := fleet.ParseDigest(entry.Name)
	if err != nil {
		return cas.Source{}, 0, fault.New(fault.Invalid, "tar entry %.100q: %s", entry.Name, fault.Detail(err))
	}
	if u.stored.Blobs == maxUploadBlobs {
		return cas.Source{}, 0, fault.New(fault.Invalid, "the archive holds more than %d entries; send it in parts", maxUploadBlobs)
	}
	return cas.Source{Digest: digest, Open: func() (io.ReadCloser, error) { return io.NopCloser(u), nil }}, entry.Size, nil
}

// Read reads the present entry. That the sender broke off is no fault of the store.
func (u *upload) Read(p []byte) (int, error) {
	n, err := u.archive.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		u.err = fault.Wrap(fault.Invalid, err, "the upload broke off after %s: %v", fault.Count(u.stored.Blobs, "entry"), err)
	}
	return n, err
}

func (h *versions) environmentStatus(ctx context.Context, request api.EnvironmentRequest) (api.CodeStatus, error) {
	env, err := fleet.ParseEnvironment(request.Environment)
	if err != nil {
		return api.CodeStatus{}, err
	}
	version, s, err := h.code.Status(ctx, env)
	if err != nil {
		return api.CodeStatus{}, err
	}
	out := api.CodeStatus{
		Environment: string(env), Version: string(version.ID), DeployedAt: version.DeployedAt.UTC().Truncate(time.Second),
		Nodes: s.Nodes, Current: s.Current, Waiting: s.Waiting, Failed: s.Failed, NoCatalog: s.NoCatalog, Unknown: s.Unknown, Held: s.Held, Errors: []api.CodeError{},
	}
	out.NoFacts, out.Untried = codeNodes(s.NoFacts), codeNodes(s.Untried)
	out.Verified = verifiedOf(s)
	found, err := h.code.Found(ctx, env, version.ID)
	if err != nil {
		return api.CodeStatus{}, err
	}
	out.Check = checkOf(found)
	for _, e := range s.Errors {
		shown := api.CodeError{Cause: string(e.Cause), Message: e.Told(), File: e.File, Line: e.Line, Nodes: e.Nodes, Names: []string{}}
		for _, name := range e.Examples {
			shown.Names = append(shown.Names, string(name))
		}
		out.Errors = append(out.Errors, shown)
	}
	slowed, err := h.compilations.slowed(ctx)
	if err != nil {
		return api.CodeStatus{}, err
	}
	for i, s := range slowed {
		if s.Environment == string(env) && !s.Previews {
			out.Slowed = &slowed[i]
		}
	}
	return out, h.deliveries.addLosses(ctx, env, s.Of, &out)
}

// maxCodeNames is how many nodes the status of an environment's code names beside their number.
const maxCodeNames = 5

func codeNodes(nodes []fleet.Certname) *api.CodeNodes {
	if len(nodes) == 0 {
		return nil
	}
	shown := &api.CodeNodes{Nodes: len(nodes)}
	for _, node := range nodes[:min(len(nodes), maxCodeNames)] {
		shown.Names = append(shown.Names, string(node))
	}
	return shown
}
