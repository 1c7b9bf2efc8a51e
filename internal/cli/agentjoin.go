package cli

import (
	"context"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tutti-project/tutti/internal/agent"
	"github.com/tutti-project/tutti/internal/cli/print"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// joinFlags are what a node is told when it joins.
type joinFlags struct {
	name, token, tokenFile, fingerprint, caFile string
	puppet                                      bool
	ssldir                                      string
	wait                                        time.Duration
	runs                                        bool
}

var agentJoin = verb[joinFlags]{
	use: "join URL", short: "Join this node to a server: get its certificate and write agent.yaml",
	long: `Join this node to a server. ` + "`tutti ca token`" + ` on the server prints the whole command: with the token the certificate is signed
at once, and by the fingerprint of the CA the node knows that it speaks to the right server. Without a token somebody has to sign
the request on the server.

The CA's certificate and revocation list, the node's key and certificate, and agent.yaml are written into the directory. Running
the command again is safe: what is there is used.

With --runs the agent also applies the node's catalog every half hour (run_interval in agent.yaml), and while the server is away.
Without it Puppet runs only when it is ordered to, or by a service of its own: two schedules would be one too many.

With --use-puppet-certificates the node takes the certificate that its puppet agent has, and nothing is asked for.`,
	example: `  tutti agent join https://tutti.example.test:8140 --token tutti-join-... --ca-fingerprint 5A:0F:...
  tutti agent join tutti.example.test --certname web-1 --ca-file ca.pem --wait 1h
  tutti agent join tutti.example.test --use-puppet-certificates --runs`,
	flags: func(f flagSet, in *joinFlags) {
		f.StringVar(&in.name, "certname", "", "name of this node; its host name if not given")
		f.StringVar(&in.token, "token", "", "one-time password, as tutti ca token prints it (TUTTI_AGENT_TOKEN)")
		f.StringVar(&in.tokenFile, "token-file", "", "file that holds the token; - is standard input")
		f.StringVar(&in.fingerprint, "ca-fingerprint", "", "SHA-256 of the CA's certificate, as tutti ca token prints it")
		f.StringVar(&in.caFile, "ca-file", "", "PEM file of the CA's certificates, instead of the fingerprint")
		f.duration(&in.wait, "wait", 10*time.Minute, "how long to wait until the request is signed; 0: not at all")
		f.BoolVar(&in.puppet, "use-puppet-certificates", false, "use the certificate of this node's puppet agent")
		f.StringVar(&in.ssldir, "puppet-ssldir", "", "where puppet's certificates are; puppet is asked if not given")
		f.BoolVar(&in.runs, "runs", false, "let the agent apply the node's catalog on a schedule, instead of puppet's own service")
		f.cmd.MarkFlagsMutuallyExclusive("token", "token-file")
		f.cmd.MarkFlagsMutuallyExclusive("ca-fingerprint", "ca-file")
		for _, name := range []string{"token", "token-file", "ca-fingerprint", "ca-file"} {
			f.cmd.MarkFlagsMutuallyExclusive("use-puppet-certificates", name)
		}
		addDirFlag(f)
	},
	run: func(_ context.Context, c *call, in *joinFlags) error {
		result, err := joinNode(c.app, c.cmd, c.args[0], *in)
		if err != nil {
			return err
		}
		return print.One(c.printer(), result, printJoined)
	},
}

func printJoined(to print.Printer, j agent.Joined) error {
	before := ""
	if j.Before {
		before = " before"
	}
	to.Line(string(j.Name) + " has joined " + j.Server + before + "; its certificate is good until " + j.Expires.Format(time.DateOnly))
	to.Hint("Start the agent with `%s`, or as a service: `%s`", withDir("tutti agent run", j.Dir), withDir("tutti agent install", j.Dir))
	return nil
}

func joinNode(a *app, cmd *cobra.Command, server string, f joinFlags) (agent.Joined, error) {
	address, err := agent.ParseServer(server)
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
	dir := agentDir(a, cmd.Flags())
	if f.puppet {
		return agent.PuppetJoin{Server: address, SSLDir: f.ssldir, Name: name, Dir: dir, Runs: f.runs, Say: a.hint}.Run(cmd.Context())
	}
	if name == "" {
		if name, err = agent.HostName(); err != nil {
			return agent.Joined{}, err
		}
	}
	token, err := joinToken(a, f)
	if err != nil {
		return agent.Joined{}, err
	}
	join := agent.Join{Server: address, Name: name, Token: token, Fingerprint: f.fingerprint, Dir: dir, Wait: f.wait, Runs: f.runs, Say: a.hint}
	if f.caFile != "" {
		if join.CA, err = readOr(f.caFile, "", "ca-file"); err != nil {
			return agent.Joined{}, err
		}
	}
	return join.Run(cmd.Context())
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
