package e2e_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// installation is one of the Puppets whose agents the stories run with. The server compiles with the machine's, unless a story says otherwise.
type installation struct {
	major     string
	puppet    func() ([]string, error) // the words that run it
	comesBack bool                     // later, when the server says so (PUP-11853)
	noop      string                   // what it says of a directory that it would make
	facts     string                   // what the class story::plugins makes of the order in which it sends the members of a fact
}

var (
	// machines is the machine's own Puppet.
	machines = installation{
		major: "7", puppet: func() ([]string, error) { return []string{"puppet"}, nil },
		noop: "current_value 'absent', should be 'directory' (noop)", facts: "zebra=y,b ant=c,a\n",
	}
	// debian13 is Puppet 8 in a folder with Debian 13, which sees the nodes' directories and the network.
	debian13 = installation{
		major: "8", puppet: sync.OnceValues(enterDebian13), comesBack: true,
		noop: "ensure: created (noop)", facts: "ant=a,c zebra=b,y\n",
	}
)

var withPuppet8 = flag.Bool("puppet8", false, "the nodes of the stories have Puppet 8, as in make test-puppet8")

// installed is what nodes have in a story that does not name it.
func installed() installation {
	if *withPuppet8 {
		return debian13
	}
	return machines
}

// enterDebian13 has the folder built, if it is not there, and makes sure that Puppet 8 runs in it.
func enterDebian13() ([]string, error) {
	const cannot = "no agent of Puppet 8 can run here; build the folder that it is in, as root: make puppet8-root (%w)\n%s"
	tools, err := filepath.Abs("../tools")
	if err != nil {
		return nil, err
	}
	build := exec.Command(filepath.Join(tools, "puppet8-root"))
	var said strings.Builder
	build.Stderr = &said
	root, err := build.Output()
	if err != nil {
		return nil, fmt.Errorf(cannot, err, said.String())
	}
	puppet := []string{"env", "PUPPET8_ROOT=" + strings.TrimSpace(string(root)), filepath.Join(tools, "in-puppet8"), "puppet"}
	version, err := exec.Command(puppet[0], append(puppet[1:], "--version")...).CombinedOutput()
	if err == nil && !strings.HasPrefix(string(version), "8.") {
		err = errors.New("it is another version")
	}
	if err != nil {
		return nil, fmt.Errorf(cannot, err, version)
	}
	return puppet, nil
}

// quick is where is kept what the Ruby of this Puppet made of its files.
func (i installation) quick(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(shims, "ruby-"+i.major)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}
