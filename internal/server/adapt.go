package server

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"net"
	"os"
	"slices"
	"time"

	"github.com/tutti-project/tutti/internal/cas"
	"github.com/tutti-project/tutti/internal/catalog"
	"github.com/tutti-project/tutti/internal/code"
	"github.com/tutti-project/tutti/internal/codecheck"
	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory"
	"github.com/tutti-project/tutti/internal/protocol/puppet"
)

// adapter gives the cores and edges each other in the shape that each asks for.
type adapter struct{ *parts }

// maxDocumentBytes is the largest catalog that is read back.
const maxDocumentBytes = 256 << 20

// Facts is compile.Inputs. What servers store with facts is none of the node's; code that
// iterates over facts finds them in the order in which the node told them.
func (a adapter) Facts(ctx context.Context, node fleet.Certname) (json.RawMessage, int64, error) {
	facts, err := a.store.Facts.FactsAsTold(ctx, node)
	return facts.Values, facts.Seq, err
}

// packedBytes is how much of packed catalogs is remembered.
const packedBytes = 64 << 20

// inlinedChecksum is the one that static catalogs carry, whoever asked first.
const inlinedChecksum = "sha256"

// Inline is compile.Finisher: files of the version become part of the catalog.
func (a adapter) Inline(ctx context.Context, env fleet.Environment, version fleet.Digest, document []byte) ([]byte, compile.Sources, error) {
	tree, err := a.library.Tree(ctx, env, version)
	if err != nil {
		return nil, compile.Sources{}, err
	}
	out, used, err := code.InlineUsing(ctx, tree, document, []string{inlinedChecksum})
	return out, compile.Sources{Trees: used.Trees, Modules: used.Modules}, err
}

// SaveDocument is compile.Documents.
func (a adapter) SaveDocument(ctx context.Context, document []byte) (fleet.Digest, error) {
	digest, _, err := a.blobs.Put(ctx, bytes.NewReader(document))
	return digest, err
}

// Document is compile.Documents.
func (a adapter) Document(ctx context.Context, d fleet.Digest) ([]byte, error) {
	return cas.Bytes(ctx, a.blobs, d, maxDocumentBytes)
}

// show makes a catalog its node's newest in the inventory, in the place of over; nil: of any.
func (a adapter) show(ctx context.Context, r compile.Result, over *fleet.Digest) error {
	exported, catalog, err := catalog.Split(r.Document)
	if err != nil {
		return err
	}
	resources, edges, err := inventory.ParseCatalog(catalog)
	if err != nil {
		return err
	}
	offered, _, err := inventory.ParseCatalog(append(append([]byte(`{"resources":`), exported...), '}'))
	if err != nil {
		return err
	}
	resources = withExported(resources, offered)
	c := r.Compilation
	return a.store.Catalogs.SaveCatalog(ctx, inventory.Catalog{
		Origin: inventory.Origin{Producer: serverName()}, ConfigVersion: string(c.Version), CodeID: string(c.Version),
		Certname: c.Node, Environment: c.Environment, Digest: c.Catalog, Version: c.Version, UUID: c.UUID,
		Transaction: c.Transaction, CompiledAt: c.FinishedAt, Compilation: c.ID, Attempt: c.Attempts, Over: over, Resources: resources, Edges: edges,
		Collected: collectedIn(resources, r.Collected),
	})
}

// withExported adds what a node exports. What it also collects itself is in its
// catalog, too, and is kept in the form in which others are given it.
func withExported(resources, offered []inventory.Resource) []inventory.Resource {
	place := make(map[[2]string]int, len(resources))
	for i, resource := range resources {
		place[[2]string{resource.Type, resource.Title}] = i
	}
	for _, resource := range offered {
		resource.Exported = true
		if i, there := place[[2]string{resource.Type, resource.Title}]; there {
			resources[i] = resource
			continue
		}
		resources = append(resources, resource)
	}
	return resources
}

// collectedIn keeps what became part of the catalog: code may ask for more.
func collectedIn(resources []inventory.Resource, collected []compile.Collected) []inventory.Collected {
	there := make(map[[2]string]bool, len(resources))
	for _, resource := range resources {
		there[[2]string{resource.Type, resource.Title}] = !resource.Exported
	}
	var kept []inventory.Collected
	for _, c := range collected {
		if there[[2]string{c.Type, c.Title}] {
			kept = append(kept, inventory.Collected(c))
		}
	}
	return kept
}

// Current is compile.Versions. It asks the rows: a catalog is of the newest
// version, and the files that its node asks for next are, too.
func (a adapter) Current(ctx context.Context, env fleet.Environment) (fleet.Digest, error) {
	version, err := a.library.Refresh(ctx, env)
	return version.ID, err
}

// Environments is compile.Environments.
func (a adapter) Environments(ctx context.Context) (map[fleet.Environment]fleet.Digest, error) {
	versions, err := a.store.Versions.Environments(ctx)
	current := make(map[fleet.Environment]fleet.Digest, len(versions))
	for _, v := range versions {
		current[v.Environment] = v.ID
	}
	return current, err
}

// codeDoor is what httpapi asks of the code: the library, and the rows that only
// people ask for. A deploy also hints to the warmer.
type codeDoor struct{ *parts }

func (d codeDoor) Deploy(ctx context.Context, deployment code.Deployment, mode codecheck.Mode) (code.Version, *codecheck.Report, error) {
	report, err := d.admit(ctx, deployment, mode)
	if err != nil {
		return code.Version{}, nil, err
	}
	version, err := d.library.Deploy(ctx, deployment)
	if err != nil {
		return version, nil, err
	}
	d.log.InfoContext(ctx, "code deployed", "environment", version.Environment, "version", version.ID.Short(),
		"commit", version.Commit, "files", version.Files, "actor", version.Actor)
	d.warmer.Deployed(version.Environment, version.ID)
	d.verifier.Deployed(version.Environment, version.ID)
	d.wanter.Hint()
	if report != nil {
		if err := d.store.CodeChecks.SaveCheck(ctx, *report); err != nil { // the next deploy reads more files
			d.log.WarnContext(ctx, "what was found in the code could not be kept", "environment", version.Environment, "version", version.ID.Short(), "err", err)
		}
	}
	return version, report, nil
}

// Stage keeps a version for previews. Nothing is warmed: it may be looked at once.
func (d codeDoor) Stage(ctx context.Context, deployment code.Deployment) (code.Version, error) {
	return d.library.Stage(ctx, deployment)
}

func (d codeDoor) Environments(ctx context.Context) ([]code.Version, error) {
	return d.store.Versions.Environments(ctx)
}

func (d codeDoor) Versions(ctx context.Context, env fleet.Environment, limit int) ([]code.Version, error) {
	return d.store.Versions.Versions(ctx, env, limit)
}

// Status is httpapi.Code.
func (d codeDoor) Status(ctx context.Context, env fleet.Environment) (code.Version, compile.CodeStatus, error) {
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

func (d codeDoor) RemoveEnvironment(ctx context.Context, env fleet.Environment) error {
	held, err := d.store.Deliveries.HeadsIn(ctx, env)
	if err != nil {
		return err
	}
	if held > 0 {
		return fault.New(fault.Conflict, "%d nodes in released mode have a catalog of %s; release one of another environment to them, or set them to live mode, before it is removed", held, env)
	}
	return d.library.Remove(ctx, env)
}

// longPatience is how long an agent is kept on the line that cannot be told to
// come back. Agents hang up after ten minutes (http_read_timeout).
const longPatience = 9 * time.Minute

// agentDoor is what the Puppet API asks for.
type agentDoor struct{ *parts }

// Catalog is puppet.Catalogs.
func (d agentDoor) Catalog(ctx context.Context, ask puppet.Ask) (puppet.Answer, error) {
	static := ask.Static && (len(ask.ChecksumTypes) == 0 || slices.Contains(ask.ChecksumTypes, inlinedChecksum))
	held, ok, err := d.deliver.Held(ctx, ask.Node)
	if err != nil {
		return puppet.Answer{}, err
	}
	if ok {
		return d.released(ctx, held, catalog.Stamp{Static: static}, ask.Packed)
	}
	question := compile.Ask{
		Node: ask.Node, Environment: ask.Environment, Transaction: ask.Transaction, Trusted: ask.Trusted, Static: static, Packed: ask.Packed,
	}
	if ask.Facts != nil {
		question.FactsSeq = ask.Facts.Seq
	}
	if ask.Stays {
		question.Patience = longPatience
	}
	answer, err := d.catalogs.Catalog(ctx, question)
	if err != nil {
		return puppet.Answer{}, err
	}
	env := ask.Environment
	if answer.Held {
		env = answer.Compilation.Environment
	} else if err := d.deliver.GivenAgain(ctx, ask.Node, answer.Compilation.Catalog); err != nil {
		return puppet.Answer{}, err
	}
	return puppet.Answer{
		Document: answer.Catalog, Packed: answer.Packed, Rich: answer.Rich, Environment: env, CodeID: string(answer.Compilation.Version),
	}, nil
}

// defaultEnvironment is what a node gets that does not ask for one.
const defaultEnvironment fleet.Environment = "production"

// NodeEnvironment is puppet.Environments: groups decide; where they say nothing,
// or leave it to the agent, a node gets the environment that it asks for.
func (d agentDoor) NodeEnvironment(ctx context.Context, node fleet.Certname, requested fleet.Environment) (fleet.Environment, error) {
	if release, ok, err := d.deliver.Held(ctx, node); err != nil || ok && release.Head != nil {
		if err != nil {
			return "", err
		}
		return release.Head.Environment, nil
	}
	decided, err := d.groups.environment(ctx, node)
	if err != nil {
		return "", err
	}
	env := cmp.Or(decided, requested, defaultEnvironment)
	_, err = d.library.Refresh(ctx, env)
	switch {
	case fault.Of(err) != fault.NotFound || err == nil:
		return env, err
	case decided != "":
		return "", fault.New(fault.Invalid, "groups give %s the environment %s, which has no code; deploy it, or see `tutti group explain %s`", node, env, node)
	}
	return "", fault.New(fault.NotFound, "Could not find environment '%s'", env)
}

// ListEnvironments is puppet.Environments.
func (d agentDoor) ListEnvironments(ctx context.Context) ([]puppet.EnvironmentSettings, error) {
	versions, err := d.store.Versions.Environments(ctx)
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

// serverFacts is $server_facts: who compiles.
func (p *parts) serverFacts() func(fleet.Environment) json.RawMessage {
	name, address := serverName(), outwardAddress()
	return func(env fleet.Environment) json.RawMessage {
		facts, _ := json.Marshal(map[string]string{
			"serverversion": puppetVersion, "servername": name, "serverip": address, "environment": string(env),
		})
		return facts
	}
}

// puppetVersion is what agents and catalogs are told; it decides which formats
// agents use.
const puppetVersion = "7.23.0"

func serverName() string {
	name, err := os.Hostname()
	if err != nil {
		return "localhost"
	}
	return name
}

// outwardAddress is an address of this machine that others may know it by.
func outwardAddress() string {
	addresses, _ := net.InterfaceAddrs()
	for _, address := range addresses {
		if network, ok := address.(*net.IPNet); ok && network.IP.IsGlobalUnicast() && network.IP.To4() != nil {
			return network.IP.String()
		}
	}
	return "127.0.0.1"
}
