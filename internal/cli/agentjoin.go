package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/tutti-project/tutti/internal/agent"
	"github.com/tutti-project/tutti/internal/cli/print"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// joinFlags are what a node is told when it joins.
type joinFlags struct {
	name, token, tokenFile, fingerprint, caFile string
	puppet, noPuppet                            bool
	ssldir, executable                          string
	wait                                        time.Duration
	runs                                        bool
}

var agentJoin = verb[joinFlags]{
	use: "join URL", short: "Join this node to a server: get its certificate and write agent.yaml",
	long: `Join this node to a server. ` + "`tutti ca token`" + ` on the server prints the whole command: with the token the certificate is signed
at once, and by the fingerprint of the CA the node knows that it speaks to the right server. Without a token somebody has to sign
the request on the server.

One certificate serves the agent and Puppet. If Puppet is installed, key, certificate, CA and revocation list are where Puppet keeps
its own, and certname and server are set in puppet.conf, so that ` + "`puppet agent -t`" + ` works at once. If Puppet has a certificate of
this CA already, the agent takes it. If Puppet has another key, or belongs to another fleet, the command says so before it changes
anything or uses the token. With --no-puppet, or if the agent is not at its usual place (--dir) and --puppet does not name one,
Puppet is left alone; the agent then has a key of its own in the directory. Without Puppet on the node it is the same: run the
command again when Puppet is installed, and it gets the certificate.

agent.yaml in the directory holds the settings. Running the command again is safe: what is there is used.

With --runs the first Puppet run is made at once, unless Puppet is left alone, and the agent applies the node's catalog every half hour from then on (run_interval
in agent.yaml), and while the server is away. Without it Puppet runs only when it is ordered to, or by a service of its own: two
schedules would be one too many.

With --use-puppet-certificates nothing is asked for, and Puppet's settings stay: the agent takes the certificate that Puppet has.

Exit codes: 0 it has joined; 4 it has joined, and the first run failed; 5 what is there on the node or on the server is in the way.`,
	example: `  tutti agent join https://tutti.example.test:8140 --token tutti-join-... --ca-fingerprint 5A:0F:...
  tutti agent join https://tutti.example.test:8140 --token tutti-join-... --ca-fingerprint 5A:0F:... --runs
  tutti agent join tutti.example.test --certname web-1 --ca-file ca.pem --wait 1h --no-puppet
  tutti agent join tutti.example.test --use-puppet-certificates --runs`,
	flags: func(f flagSet, in *joinFlags) {
		f.StringVar(&in.name, "certname", "", "name of this node; that of its Puppet, or its host name, if not given")
		f.StringVar(&in.token, "token", "", "one-time password, as tutti ca token prints it (TUTTI_AGENT_TOKEN)")
		f.StringVar(&in.tokenFile, "token-file", "", "file that holds the token; - is standard input")
		f.StringVar(&in.fingerprint, "ca-fingerprint", "", "SHA-256 of the CA's certificate, as tutti ca token prints it")
		f.StringVar(&in.caFile, "ca-file", "", "PEM file of the CA's certificates, instead of the fingerprint")
		f.duration(&in.wait, "wait", 10*time.Minute, "how long to wait until the request is signed; 0: not at all")
		f.BoolVar(&in.puppet, "use-puppet-certificates", false, "use the certificate of this node's puppet agent")
		f.StringVar(&in.ssldir, "puppet-ssldir", "", "where puppet's certificates are; puppet is asked if not given")
		f.StringVar(&in.executable, "puppet", "", "path of the puppet that shares the certificate; looked for if not given")
		f.BoolVar(&in.noPuppet, "no-puppet", false, "leave puppet alone: the agent has a key and a certificate of its own")
		f.BoolVar(&in.runs, "runs", false, "make the first Puppet run now, and let the agent apply the node's catalog on a schedule, instead of puppet's own service")
		f.cmd.MarkFlagsMutuallyExclusive("token", "token-file")
		f.cmd.MarkFlagsMutuallyExclusive("ca-fingerprint", "ca-file")
		f.cmd.MarkFlagsMutuallyExclusive("puppet", "no-puppet")
		for _, name := range []string{"no-puppet", "token", "token-file", "ca-fingerprint", "ca-file"} {
			f.cmd.MarkFlagsMutuallyExclusive("use-puppet-certificates", name)
		}
		addDirFlag(f)
	},
	run: func(ctx context.Context, c *call, in *joinFlags) error {
		result, err := joinNode(ctx, c, *in)
		if err != nil {
			return err
		}
		if err := print.One(c.printer(), result, printJoined); err != nil {
			return err
		}
		return firstRunVerdict(result)
	},
}

func printJoined(to print.Printer, j agent.Joined) error {
	before := ""
	if j.Before {
		before = " before"
	}
	to.Line(string(j.Name) + " has joined " + j.Server + before + "; its certificate is good until " + j.Expires.Format(time.DateOnly))
	if j.Shared != nil {
		to.Line(sharedText(*j.Shared))
	}
	if j.Run != nil {
		to.Line("first Puppet run: " + firstRunText(*j.Run))
	}
	to.Hint("Start the agent with `%s`, or as a service: `%s`", withDir("tutti agent run", j.Dir), withDir("tutti agent install", j.Dir))
	return nil
}

// sharedText is what was done about Puppet.
func sharedText(s agent.Shared) string {
	text := "puppet shares the certificate, in "
	switch {
	case s.Taken:
		text = "puppet had the certificate, and the agent takes it from "
	case s.Given:
		text = "puppet gets the agent's certificate, in "
	}
	text += s.SSLDir
	if len(s.Set) > 0 {
		text += "; set in " + s.Config + ": " + joined(s.Set)
	}
	return text
}

func firstRunText(r agent.FirstRun) string {
	if r.WithoutCode != "" {
		return "failed: " + fleet.WithoutCode(r.WithoutCode)
	}
	if r.Error != "" {
		return "failed: " + r.Error
	}
	text := r.Status
	if total := r.Metrics["total"]; total > 0 {
		text += fmt.Sprintf(", %d of %s changed", r.Metrics["changed"], fault.Count(total, "resource"))
	}
	if failed := r.Metrics["failed"]; failed > 0 {
		text += fmt.Sprintf(", %d failed", failed)
	}
	return text
}

// firstRunVerdict is the error that the first run is, if there was one.
func firstRunVerdict(j agent.Joined) error {
	if j.Run == nil || !j.Run.Failed() {
		return nil
	}
	if env := j.Run.WithoutCode; env != "" {
		return jobOutcome{exitSomeFailed, string(j.Name) + " has joined, but " + fleet.WithoutCode(env) + ", then run `puppet agent -t` here"}
	}
	return jobOutcome{exitSomeFailed, string(j.Name) + " has joined, but its first Puppet run failed: mend what Puppet says above, and run `puppet agent -t`; `tutti agent doctor` looks for what is wrong with the node"}
}

func joinNode(ctx context.Context, c *call, f joinFlags) (agent.Joined, error) {
	address, err := agent.ParseServer(c.args[0])
	if err != nil {
		return agent.Joined{}, usageError{err}
	}
	name, err := f.certname()
	if err != nil {
		return agent.Joined{}, err
	}
	if f.ssldir != "" && !f.puppet {
		return agent.Joined{}, usageError{fault.New(fault.Invalid, "--puppet-ssldir says where the certificates are that --use-puppet-certificates uses; give both")}
	}
	dir := agentDir(c.app, c.cmd.Flags())
	puppet, absent, err := f.neighbour(dir)
	if err != nil {
		return agent.Joined{}, err
	}
	var result agent.Joined
	if f.puppet {
		result, err = agent.PuppetJoin{Server: address, SSLDir: f.ssldir, Name: name, Puppet: f.executable, Dir: dir, Runs: f.runs, Say: c.hint}.Run(ctx)
	} else {
		result, err = f.join(ctx, c, agent.Join{Server: address, Name: name, Dir: dir, Puppet: puppet})
	}
	if err != nil {
		return result, err
	}
	if absent {
		c.hint("Puppet is not installed, so the agent alone has joined. When it is installed, run `%s` again: Puppet gets the certificate then. "+
			"Debian: apt-get install puppet-agent, or openvox-agent from OpenVox's packages", withDir("tutti agent join "+address.String(), dir))
	}
	if f.runs && puppet == "" && !absent {
		c.hint("%s", f.withoutRun())
	}
	if !f.runs || puppet == "" {
		return result, nil
	}
	if unit := agent.OtherSchedule(ctx); unit != "" {
		c.hint("%s lets Puppet run, too, so each catalog is applied twice: systemctl disable --now %s", unit, unit)
	}
	c.hint("%s has joined; its first Puppet run begins", result.Name)
	run, err := agent.RunFirst(ctx, puppet, c.coloured(c.system.animates()), c.system.Err)
	result.Run = &run
	return result, err
}

// withoutRun is why --runs made no first run where Puppet is installed, and how there is one.
func (f joinFlags) withoutRun() string {
	switch {
	case f.puppet:
		return "No first run was made: make it yourself with `puppet agent -t`"
	case f.noPuppet:
		return "Puppet was left alone, so no first run was made; join again without --no-puppet to share the certificate with it"
	}
	return "Puppet was left alone, so no first run was made: an agent in a directory of its own shares only the Puppet that --puppet PATH names"
}

// neighbour is the Puppet of this node that the agent shares its certificate with; empty: it is left alone. The agent that is not at its usual
// place is somebody's own, and has nothing to do with the machine's Puppet unless that is named.
func (f joinFlags) neighbour(dir string) (puppet string, absent bool, err error) {
	usual := dir == agent.Default().Dir
	if f.noPuppet || f.ssldir != "" || f.executable == "" && !usual {
		return "", false, nil
	}
	puppet, err = agent.FindPuppet(f.executable)
	if f.executable != "" && fault.Is(err, fault.NotFound) {
		return "", false, usageError{fault.New(fault.Invalid, "--puppet: there is no program %s", f.executable)}
	}
	if f.executable == "" && fault.Is(err, fault.NotFound) && !f.puppet {
		return "", true, nil
	}
	return puppet, false, err
}

// join asks for a certificate.
func (f joinFlags) join(ctx context.Context, c *call, j agent.Join) (_ agent.Joined, err error) {
	if j.Name == "" && j.Puppet == "" {
		if j.Name, err = agent.HostName(ctx); err != nil {
			return agent.Joined{}, err
		}
	}
	if j.Token, err = joinToken(c.app, f); err != nil {
		return agent.Joined{}, err
	}
	j.Fingerprint, j.Wait, j.Runs, j.Named, j.Say = f.fingerprint, f.wait, f.runs, f.executable != "", c.hint
	if f.caFile != "" {
		if j.CA, err = readOr(f.caFile, "", "ca-file"); err != nil {
			return agent.Joined{}, err
		}
	}
	return j.Run(ctx)
}

func (f joinFlags) certname() (fleet.Certname, error) {
	if f.name == "" {
		return "", nil
	}
	name, err := fleet.ParseCertname(f.name)
	if err != nil {
		return "", usageError{fault.New(fault.Invalid, "--certname: %s", fault.Detail(err))}
	}
	return name, nil
}

// maxTokenBytes is more than any token has.
const maxTokenBytes = 4096

// joinToken is the one that was given, in one of three ways; empty: none.
func joinToken(a *app, f joinFlags) (string, error) {
	switch f.tokenFile {
	case "":
		return first(f.token, a.system.Getenv("TUTTI_AGENT_TOKEN")), nil
	case "-":
		text, err := io.ReadAll(io.LimitReader(a.system.In, maxTokenBytes))
		return strings.TrimSpace(string(text)), err
	}
	text, err := readOr(f.tokenFile, "", "token-file")
	return strings.TrimSpace(string(text)), err
}

// withDir is a command for an agent that is not at the usual place.
func withDir(command, dir string) string {
	if dir == agent.Default().Dir {
		return command
	}
	return command + " --dir " + dir
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.IsDir()
}
