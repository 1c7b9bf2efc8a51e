package cli

import (
	"encoding/json"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/tutti-project/tutti/internal/fault"
)

// clientTools is what the configuration files of Puppet Enterprise's client tools say, which pipelines and Bolt read, too.
type clientTools struct {
	ServiceURL  string `json:"service-url"`
	CACert      string `json:"cacert"`
	Certificate string `json:"certificate-file"` // puppet-access has this name for it
	TokenFile   string `json:"token-file"`
	Environment string `json:"environment"`
	Color       *bool  `json:"color"`
	Noop        *bool  `json:"noop"`

	from string // the file that has the service-url
}

// globalTools is where an administrator keeps them for everybody.
const globalTools = "/etc/puppetlabs/client-tools"

// maxToolsFile is the largest of these files that is read, in bytes.
const maxToolsFile = 1 << 20

// toolsFile is the file of a tool.
var toolsFile = map[string]string{
	"job": "orchestrator.conf", "task": "orchestrator.conf", "app": "orchestrator.conf", "access": "puppet-access.conf", "code": "puppet-code.conf",
	"query": "puppetdb.conf",
}

// readTools reads the files for a tool: the one that --config-file names alone, else those of the machine and of the user; what
// the user says wins.
func (a *app) readTools(tool string) (tools clientTools, err error) {
	name := first(toolsFile[tool], "orchestrator.conf")
	if a.tools.config != "" {
		return tools, tools.read(a.tools.config, true)
	}
	if err := tools.read(filepath.Join(globalTools, name), false); err != nil {
		return tools, err
	}
	if home := a.system.Getenv("HOME"); home != "" {
		err = tools.read(filepath.Join(home, ".puppetlabs", "client-tools", name), false)
	}
	return tools, err
}

// read takes what a file says. orchestrator.conf has it below options, puppetdb.conf below puppetdb, with a list of addresses.
func (t *clientTools) read(path string, must bool) error {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) && !must {
		return nil
	}
	if err != nil {
		return unread("the configuration", path, err)
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil || info.Size() > maxToolsFile || !info.Mode().IsRegular() {
		return usageError{fault.New(fault.Invalid, "%s is no file of at most %d bytes", path, maxToolsFile)}
	}
	before := t.ServiceURL
	document := struct {
		*clientTools
		Options  *clientTools `json:"options"`
		PuppetDB struct {
			URLs      json.RawMessage `json:"server_urls"`
			CACert    string          `json:"cacert"`
			TokenFile string          `json:"token-file"`
		} `json:"puppetdb"`
	}{clientTools: t, Options: t}
	if err := json.NewDecoder(file).Decode(&document); err != nil {
		return usageError{fault.Wrap(fault.Invalid, err, "%s is no JSON as the client tools have it: %v", path, err)}
	}
	t.CACert, t.Certificate = first(document.PuppetDB.CACert, t.Certificate, t.CACert), ""
	t.TokenFile = first(document.PuppetDB.TokenFile, t.TokenFile)
	var one string
	var many []string
	if json.Unmarshal(document.PuppetDB.URLs, &one) == nil && one != "" {
		t.ServiceURL = one
	} else if json.Unmarshal(document.PuppetDB.URLs, &many) == nil && len(many) > 0 {
		t.ServiceURL = many[0]
	}
	if t.ServiceURL != before {
		t.from = path
	}
	return nil
}

// serverOf is the server of a service-url: paths such as /rbac-api are not Tutti's.
func serverOf(service string) (string, error) {
	parsed, err := url.Parse(service)
	if err != nil || parsed.Host == "" || parsed.Scheme != "https" {
		return "", usageError{fault.New(fault.Invalid, "the service-url %.100q is no address; it is https://HOST:PORT", service)}
	}
	return "https://" + parsed.Host, nil
}

// inTools is the server that the client tools are configured for; ok is false when they are not.
func (a *app) inTools(tool string) (t target, ok bool, err error) {
	tools, err := a.readTools(tool)
	if err != nil || tools.ServiceURL == "" {
		return target{}, false, err
	}
	server, err := serverOf(tools.ServiceURL)
	ca := atHome(a.system.Getenv("HOME"), tools.CACert)
	if ca == "" && exists(puppetCA) {
		ca = puppetCA
	}
	return target{
		server: server, caFile: ca, tokenFile: first(atHome(a.system.Getenv("HOME"), tools.TokenFile), a.toolsToken()), why: "service-url in " + tools.from,
	}, true, err
}

// puppetCA is the CA that a node of Puppet knows.
const puppetCA = "/etc/puppetlabs/puppet/ssl/certs/ca.pem"

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// toolsToken is where the client tools and Bolt look for a token; empty without a home.
func (a *app) toolsToken() string {
	if home := a.system.Getenv("HOME"); home != "" {
		return filepath.Join(home, ".puppetlabs", "token")
	}
	return ""
}

// atHome replaces a ~ at the beginning of a path.
func atHome(home, path string) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		return filepath.Join(home, rest)
	}
	return path
}
