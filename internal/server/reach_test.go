package server

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/cas"
	"github.com/tutti-project/tutti/internal/code"
	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/diff"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/preview"
)

// brought stores a manifest that is not deployed.
func (w *deliverWorld) brought(manifest string) fleet.Digest {
	w.Helper()
	dir := w.TempDir()
	w.must(os.MkdirAll(filepath.Join(dir, "manifests"), 0o755))
	w.must(os.WriteFile(filepath.Join(dir, "manifests", "site.pp"), []byte(manifest), 0o644))
	bundle, err := code.Build(w.Context(), dir, code.BuildOptions{})
	w.must(err)
	_, err = bundle.Upload(w.Context(), w.p.blobs)
	w.must(err)
	v, err := w.p.library.Stage(w.Context(), code.Deployment{Environment: "production", Manifest: bundle.Manifest, At: time.Now(), Actor: "test", Origin: "test"})
	w.must(err)
	return v.ID
}

// previewed has a version previewed for one node, and returns its catalog or why there is none.
func (w *deliverWorld) previewed(actor fleet.Actor, version fleet.Digest, node fleet.Certname) (preview.Preview, preview.Share, string) {
	w.Helper()
	p, err := w.p.previews.Create(w.Context(), actor, preview.Order{
		Environment: "production", Version: version, Targets: api.JobTargets{Nodes: []string{string(node)}},
	})
	w.must(err)
	for p.State == preview.Compiling {
		w.must(w.p.previews.Wait(w.Context(), p.ID, p.Counts.Known()))
		p, err = w.p.previews.Preview(w.Context(), p.ID)
		w.must(err)
	}
	shares, err := w.p.previews.Shares(w.Context(), p.ID, preview.SharePage{Limit: 1})
	w.must(err)
	if shares[0].Fresh == "" {
		return p, shares[0], shares[0].Failure.Message
	}
	text, err := cas.Bytes(w.Context(), w.p.blobs, shares[0].Fresh, diff.MaxCatalogBytes)
	w.must(err)
	return p, shares[0], string(text)
}

// The code of a preview is told of the nodes that its author may see, whoever else has the same code previewed.
func TestCodeOfAPreviewSeesWhatItsAuthorSees(t *testing.T) {
	t.Parallel()
	w := newDeliverWorld(t)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.p.previews.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	w.facts("db-1.example", "db")
	w.deploy(`@@notify { "exported by ${trusted['certname']}": }`)
	for _, node := range []fleet.Certname{heldNode, "db-1.example"} {
		w.asks(node)
	}
	w.facts("web-2.example", "web")
	version := w.brought(`
$names = puppetdb_query('nodes[certname]{}').map |$n| { $n['certname'] }.join(' ')
notify { "knows ${names}": }
$guessed = puppetdb_query('nodes[certname]{ report_environment is null and facts_environment in nodes[facts_environment]{ certname = "db-1.example" } }').map |$n| { $n['certname'] }.join(' ')
notify { "guessed ${guessed}": }
Notify <<| |>>
`)
	everything := fleet.Actor{Kind: fleet.UserActor, Name: "root", Grants: []fleet.Grant{{Permission: fleet.Everything}}}
	narrow := fleet.Actor{Kind: fleet.UserActor, Name: "ann", Grants: []fleet.Grant{
		{Permission: fleet.PreviewCreate}, {Permission: fleet.NodeRead, Nodes: `facts.role = "web"`},
	}}
	blind := fleet.Actor{Kind: fleet.UserActor, Name: "ci", Grants: []fleet.Grant{{Permission: fleet.PreviewCreate}}}
	for _, c := range []struct {
		actor         fleet.Actor
		there, absent []string
	}{
		{everything, []string{
			"knows db-1.example web-1.example web-2.example", "guessed db-1.example", "exported by db-1.example", "exported by web-1.example",
		}, nil},
		{narrow, []string{"knows web-1.example web-2.example", `"guessed "`, "exported by web-1.example"}, []string{"db-1.example"}},
		{everything, []string{"knows db-1.example web-1.example web-2.example", "exported by db-1.example"}, nil},
		{blind, []string{`"knows "`}, []string{"db-1.example", "exported by"}},
	} {
		p, share, text := w.previewed(c.actor, version, "web-2.example")
		for _, want := range c.there {
			if !strings.Contains(text, want) {
				t.Errorf("%s: %q is not in %s", c.actor.Name, want, text)
			}
		}
		for _, secret := range c.absent {
			if strings.Contains(text, secret) {
				t.Errorf("%s: %q is in %s", c.actor.Name, secret, text)
			}
		}
		if said := share.Volatile == compile.Narrowed; said != (p.Reach != "") {
			t.Errorf("%s: of reach %q the share says %q", c.actor.Name, p.Reach, share.Volatile)
		}
	}
	if _, _, text := w.previewed(narrow, w.brought(`puppetdb_query('fact_paths{}')`), "web-2.example"); !strings.Contains(text, "fact_paths tells of all nodes") {
		t.Errorf("who asks for what belongs to no node is told %s", text)
	}
}
