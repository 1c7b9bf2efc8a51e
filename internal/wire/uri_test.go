package wire_test

import (
	"strings"
	"testing"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/wire"
)

func TestURIs(t *testing.T) {
	t.Parallel()
	for uri, good := range map[string]bool{
		"pcp://web1.example.test/agent": true, "pcp:///server": true, "pcp://*/agent": true, "pcp://web1/*": true, "pcp://orch.example.test:8143/server": true,
		"": false, "pcp://": false, "pcp://web1": false, "pcp://web1/": false, "pcp://web1/a/b": false, "http://web1/agent": false,
		"PCP://web1/agent": false, " pcp://web1/agent": false, "pcp://we\x00b1/agent": false, "pcp://web1/agent\n": false,
		"pcp://" + strings.Repeat("a", wire.MaxURIBytes) + "/agent": false,
	} {
		got, err := wire.ParseURI(uri)
		if (err == nil) != good || err != nil && fault.Of(err) != fault.Invalid {
			t.Errorf("%q: %v", uri, err)
		}
		if good && wire.NewURI(got.Name(), got.Type()) != got {
			t.Errorf("%q falls into %q and %q", uri, got.Name(), got.Type())
		}
	}
}

func TestPatterns(t *testing.T) {
	t.Parallel()
	const client wire.URI = "pcp://web1/agent"
	for pattern, want := range map[wire.URI]bool{
		client: true, "pcp://*/agent": true, "pcp://web1/*": true, "pcp://*/*": true,
		"pcp://web2/agent": false, "pcp://*/controller": false, "pcp://web2/*": false, "pcp://web*/agent": false, "pcp:///agent": false,
	} {
		if got := pattern.Matches(client); got != want {
			t.Errorf("%s matches %s: %v", pattern, client, got)
		}
	}
	if wire.Broker.IsPattern() || !wire.URI("pcp://*/agent").IsPattern() {
		t.Error("what a pattern is")
	}
}
