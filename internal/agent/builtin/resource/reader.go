package resource

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/tutti-project/tutti/internal/agent/orders"
	"github.com/tutti-project/tutti/internal/agent/puppetenv"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/program/group"
	"github.com/tutti-project/tutti/internal/program/output"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// application is what is loaded into Puppet.
//
//go:embed tutti_resource.rb
var application []byte

const (
	applicationName = "tutti_resource"
	// readers are how many programs read at a time: each is a Ruby.
	readers = 2
	// lingering is how long what a provider left in the background may hold the output.
	lingering = 2 * time.Second
	maxAnswer = 2 * MaxBytes
	maxNoise  = 4 << 10
)

// reader asks Puppet what only has to be read.
type reader struct {
	Config
	turns chan struct{}
}

func newReader(c Config) reader { return reader{Config: c, turns: make(chan struct{}, readers)} }

// command starts the application.
func (c Config) command(q request) (orders.Command, error) {
	bin, err := c.Puppet()
	if err != nil {
		return orders.Command{}, err
	}
	if err := puppetenv.Install(filepath.Join(c.Dir, "puppet", "application", applicationName+".rb"), application); err != nil {
		return orders.Command{}, fault.Wrap(fault.Unavailable, err, "what looks at resources could not be put into %s: %v", c.Dir, err)
	}
	script, wrapped, ok := puppetenv.RubyScript(bin)
	if !ok {
		script = bin
	}
	env := append(os.Environ(), puppetenv.Environment(os.Getenv)...)
	libraries := puppetenv.LastOf(env, "RUBYLIB")
	if wrapped {
		libraries = ""
		env = puppetenv.Unwrapped(env, filepath.Dir(bin))
	}
	own := append(puppetenv.Environment(os.Getenv), "RUBYLIB="+strings.TrimSuffix(c.Dir+string(os.PathListSeparator)+libraries, string(os.PathListSeparator)),
		"PATH="+puppetenv.LastOf(env, "PATH"))
	return orders.Command{Path: script, Args: []string{applicationName}, Env: own, Input: pxp.Data(q)}, nil
}

// ask starts the application, and returns its results.
func (r reader) ask(ctx context.Context, q request) (jsontext.Value, error) {
	c, err := r.command(q)
	if err != nil {
		return nil, err
	}
	select {
	case r.turns <- struct{}{}:
		defer func() { <-r.turns }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	cmd := exec.CommandContext(ctx, c.Path, c.Args...) //nolint:gosec // the operator's puppet
	cmd.Env = append(os.Environ(), c.Env...)
	cmd.Stdin, cmd.WaitDelay = strings.NewReader(string(c.Input)), lingering
	out, noise := &output.Beginning{Most: maxAnswer}, &output.Beginning{Most: maxNoise}
	cmd.Stdout, cmd.Stderr = out, noise
	group.Own(cmd)
	if err = cmd.Run(); errors.Is(err, exec.ErrWaitDelay) {
		err = nil // what it left in the background was cut off
	}
	if ctx.Err() != nil {
		return nil, fault.New(fault.Unavailable, "Puppet took too long to look at resources of the type %s, and was ended", q.Type)
	}
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "puppet %s: %v: %.300s", applicationName, err, lastLine(noise.String()))
	}
	value, err := results(orders.Output{Stdout: out.Bytes(), Stderr: noise.Bytes()})
	if _, aborted := errors.AsType[*orders.Aborted](err); err != nil && !aborted {
		return nil, fault.Wrap(fault.Unavailable, err, "puppet %s %v", applicationName, err)
	}
	return value, err
}

// results reads the application's answer.
func results(o orders.Output) (jsontext.Value, error) {
	var answer struct {
		Results jsontext.Value `json:"results"`
		Aborted string         `json:"aborted"`
	}
	switch err := json.Unmarshal(o.Stdout, &answer); {
	case o.Ended != "":
		return nil, errors.New("was ended before Puppet was done")
	case err != nil:
		return nil, errors.New("gave no answer - stderr: " + orders.ErrorText(o))
	case answer.Aborted != "":
		return nil, &orders.Aborted{Message: answer.Aborted, Data: answer.Results}
	case len(answer.Results) == 0 || answer.Results.Kind() == 'n': // nobody checks those of apply
		return nil, errors.New("gave no results - stderr: " + orders.ErrorText(o))
	}
	return answer.Results, nil
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}

// unlistable are types of which Puppet knows no resources but those of a catalog.
var unlistable = strings.Fields("exec file filebucket notify resources schedule stage tidy whit component augeas")

// costs says why it is expensive to list a type; empty: it is not.
func (r reader) costs(kind string) string {
	switch {
	case slices.Contains(unlistable, kind):
		return "Puppet cannot enumerate them"
	case kind != "user" && kind != "group":
		return ""
	}
	text, err := puppetenv.ReadBounded(cmp.Or(r.NSSwitch, "/etc/nsswitch.conf"), maxSwitch)
	if err != nil {
		return "" // a machine without the file has no such services
	}
	if service := directory(string(text), kind); service != "" {
		return "this machine asks " + service + " for them, which may have very many"
	}
	return ""
}

// maxSwitch bounds nsswitch.conf.
const maxSwitch = 64 << 10

// directory is the directory service that a machine asks for users or groups; empty: there is none.
func directory(text, kind string) string {
	database := map[string]string{"user": "passwd", "group": "group"}[kind]
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		name, services, _ := strings.Cut(line, ":")
		if strings.TrimSpace(name) != database {
			continue
		}
		for service := range strings.FieldsSeq(services) {
			if slices.Contains([]string{"ldap", "sss", "winbind", "nis", "nisplus", "hesiod", "vas4"}, service) {
				return service
			}
		}
	}
	return ""
}
