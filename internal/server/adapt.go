package server

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"sync/atomic"

	"github.com/tutti-project/tutti/internal/cas"
	"github.com/tutti-project/tutti/internal/checkin"
	"github.com/tutti-project/tutti/internal/code"
	"github.com/tutti-project/tutti/internal/codecheck"
	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/compiler/ruby"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory"
	"github.com/tutti-project/tutti/internal/protocol/puppet"
	"github.com/tutti-project/tutti/internal/server/settings"
	"github.com/tutti-project/tutti/internal/store/sql"
)

// maxDocumentBytes is the largest catalog that is read back.
const maxDocumentBytes = 256 << 20

// asTold is compile.Inputs.
type asTold struct{ facts inventory.FactStore }

// Facts implements compile.Inputs. What servers store with facts is none of the node's; code that
// iterates over facts finds them in the order in which the node told them.
func (a asTold) Facts(ctx context.Context, node fleet.Certname) (json.RawMessage, int64, error) {
	facts, err := a.facts.FactsAsTold(ctx, node)
	return facts.Values, facts.Seq, err
}

// packedBytes is how much of packed catalogs is remembered.
const packedBytes = 64 << 20

// inliner is compile.Finisher.
type inliner struct{ library *code.Library }

// Inline implements compile.Finisher: files of the version become part of the catalog.
func (a inliner) Inline(ctx context.Context, env fleet.Environment, version fleet.Digest, document []byte) ([]byte, compile.Sources, error) {
	tree, err := a.library.Tree(ctx, env, version)
	if err != nil {
		return nil, compile.Sources{}, err
	}
	out, used, err := code.InlineUsing(ctx, tree, document, []string{checkin.InlinedChecksum})
	return out, compile.Sources{Trees: used.Trees, Modules: used.Modules}, err
}

// documents is compile.Documents.
type documents struct{ blobs cas.Store }

// SaveDocument implements compile.Documents.
func (a documents) SaveDocument(ctx context.Context, document []byte) (fleet.Digest, error) {
	digest, _, err := a.blobs.Put(ctx, bytes.NewReader(document))
	return digest, err
}

// Document implements compile.Documents.
func (a documents) Document(ctx context.Context, d fleet.Digest) ([]byte, error) {
	return cas.Bytes(ctx, a.blobs, d, maxDocumentBytes)
}

// versions is compile.Versions and compile.Environments.
type versions struct {
	library *code.Library
	rows    code.Store
}

// Current implements compile.Versions. It asks the rows: a catalog is of the newest
// version, and the files that its node asks for next are, too.
func (a versions) Current(ctx context.Context, env fleet.Environment) (fleet.Digest, error) {
	version, err := a.library.Refresh(ctx, env)
	return version.ID, err
}

// Environments implements compile.Environments.
func (a versions) Environments(ctx context.Context) (map[fleet.Environment]fleet.Digest, error) {
	deployed, err := a.rows.Environments(ctx)
	current := make(map[fleet.Environment]fleet.Digest, len(deployed))
	for _, v := range deployed {
		current[v.Environment] = v.ID
	}
	return current, err
}

// deployments is what rest asks of the code: the library, and the rows that only
// people ask for. A deploy also hints to the warmer, and to those of other servers.
type deployments struct {
	library       *code.Library
	versions      code.Store
	heads         *sql.Deliveries
	checks        *codecheck.Service
	reports       codecheck.Store
	warmer        *compile.Warmer
	deployedThere func(id string)
	wanter        *compile.Wanter
	verifier      *compile.Verifier
	verifications compile.Verifications
	engines       *ruby.Engines
	supplies      supplies
	config        *atomic.Pointer[settings.Config]
	log           *slog.Logger
}

// deployments makes it.
func (p *parts) deployments() deployments {
	return deployments{
		library:       p.library,
		versions:      p.store.Versions,
		heads:         p.store.Deliveries,
		checks:        p.checks,
		reports:       p.store.CodeChecks,
		warmer:        p.warmer,
		deployedThere: p.deployedThere,
		wanter:        p.wanter,
		verifier:      p.verifier,
		verifications: p.store.Verifications,
		engines:       p.ruby,
		supplies:      supplies{p.library, p.agents, p.moduleHinter, p.log.Logger},
		config:        &p.config,
		log:           p.log.Logger,
	}
}

// Deploy implements rest.Code.
func (d deployments) Deploy(ctx context.Context, deployment code.Deployment, mode codecheck.Mode) (code.Version, *codecheck.Report, error) {
	if err := d.checkEngine(ctx, deployment); err != nil {
		return code.Version{}, nil, err
	}
	report, err := d.admit(ctx, deployment, mode)
	if err != nil {
		return code.Version{}, nil, err
	}
	before := d.supplies.of(ctx, deployment.Environment)
	version, err := d.library.Deploy(ctx, deployment)
	if err != nil {
		return version, nil, err
	}
	d.supplies.changed(ctx, deployment.Environment, before)
	d.log.InfoContext(ctx, "code deployed", "environment", version.Environment, "version", version.ID.Short(),
		"commit", version.Commit, "files", version.Files, "actor", version.Actor)
	d.warmer.Deployed(version.Environment, version.ID)
	d.deployedThere("")
	d.verifier.Deployed(version.Environment, version.ID)
	d.wanter.Hint()
	if report != nil {
		if err := d.reports.SaveCheck(ctx, *report); err != nil { // the next deploy reads more files
			d.log.WarnContext(ctx, "what was found in the code could not be kept", "environment", version.Environment, "version", version.ID.Short(), "err", err)
		}
	}
	return version, report, nil
}

// Stage keeps a version for previews. Nothing is warmed: it may be looked at once.
func (d deployments) Stage(ctx context.Context, deployment code.Deployment) (code.Version, error) {
	if err := d.checkEngine(ctx, deployment); err != nil {
		return code.Version{}, err
	}
	return d.library.Stage(ctx, deployment)
}

// Manifest implements rest.Code.
func (d deployments) Manifest(ctx context.Context, env fleet.Environment, version fleet.Digest) (code.Manifest, error) {
	tree, err := d.library.Tree(ctx, env, version)
	if err != nil {
		return code.Manifest{}, err
	}
	return tree.Manifest(), nil
}

func (d deployments) Environments(ctx context.Context) ([]code.Version, error) {
	return d.versions.Environments(ctx)
}

func (d deployments) Versions(ctx context.Context, env fleet.Environment, limit int) ([]code.Version, error) {
	return d.versions.Versions(ctx, env, limit)
}

// Status is rest.Code.
func (d deployments) Status(ctx context.Context, env fleet.Environment) (code.Version, compile.CodeStatus, error) {
	version, err := d.library.Refresh(ctx, env)
	if err != nil {
		return version, compile.CodeStatus{}, err
	}
	status, err := d.wanter.Status(ctx, env, version.ID)
	if err != nil {
		return version, status, err
	}
	return version, status, d.verified(ctx, env, version.ID, &status)
}

func (d deployments) RemoveEnvironment(ctx context.Context, env fleet.Environment) error {
	held, err := d.heads.HeadsIn(ctx, env)
	if err != nil {
		return err
	}
	if held > 0 {
		return fault.New(fault.Conflict,
			"a catalog of %s was released to %s: release one of another environment there, or set live mode, before the environment is removed", env,
			fault.Count(held, "node"))
	}
	return d.library.Remove(ctx, env)
}

// environments is puppet.Environments.
type environments struct {
	library *code.Library
	rows    code.Store
}

// ListEnvironments implements puppet.Environments.
func (d environments) ListEnvironments(ctx context.Context) ([]puppet.EnvironmentSettings, error) {
	versions, err := d.rows.Environments(ctx)
	if err != nil {
		return nil, err
	}
	settings := make([]puppet.EnvironmentSettings, 0, len(versions))
	for _, v := range versions {
		tree, err := d.library.Tree(ctx, v.Environment, v.ID)
		if err != nil {
			return nil, err
		}
		start, err := d.library.StartManifest(ctx, tree)
		if err != nil {
			return nil, err
		}
		settings = append(settings, puppet.EnvironmentSettings{
			Name: v.Environment, ModulePath: tree.Manifest().ModulePath, Manifest: start, ConfigVersion: string(v.ID),
		})
	}
	return settings, nil
}

// outwardAddresses are the first of this machine's that others may know it by; of IPv6 there may be none.
func outwardAddresses() (four, six string) {
	addresses, _ := net.InterfaceAddrs()
	for _, address := range addresses {
		network, ok := address.(*net.IPNet)
		switch {
		case !ok || !network.IP.IsGlobalUnicast():
		case network.IP.To4() != nil:
			four = cmp.Or(four, network.IP.String())
		default:
			six = cmp.Or(six, network.IP.String())
		}
	}
	return cmp.Or(four, "127.0.0.1"), six
}
