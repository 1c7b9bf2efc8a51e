package agent

import (
	"context"
	"errors"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/tutti-project/tutti/internal/agent/puppetenv"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// FindPuppet returns the path of the Puppet that an agent runs: the one that was named, or where packages put it; NotFound.
func FindPuppet(named string) (string, error) { return findPuppet(named) }

// findPuppet returns the path of puppet: the one that was named, or where packages put it.
func findPuppet(named string) (string, error) {
	places := []string{"/opt/puppetlabs/bin/puppet"}
	if runtime.GOOS == "windows" {
		places = []string{filepath.Join(os.Getenv("ProgramFiles"), "Puppet Labs", "Puppet", "bin", "puppet.bat")}
	}
	if named != "" {
		places = []string{named}
	}
	for _, path := range places {
		if info, err := os.Stat(path); err == nil && !info.IsDir() {
			return path, nil
		}
	}
	if named != "" {
		return "", fault.New(fault.NotFound, "there is no %s; set puppet in agent.yaml to the path of puppet", named)
	}
	path, err := exec.LookPath("puppet")
	if err != nil {
		return "",
			fault.New(fault.NotFound, "puppet is not installed; Puppet runs need it (Debian: apt-get install puppet-agent, or openvox-agent from OpenVox's packages)")
	}
	return filepath.Abs(path)
}

// puppetTime bounds a question to puppet.
const puppetTime = time.Minute

// puppetSays runs puppet and returns what it prints.
func puppetSays(ctx context.Context, puppet string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, puppetTime)
	defer cancel()
	out, err := exec.CommandContext(ctx, puppet, args...).Output() //nolint:gosec // the operator's puppet
	if err != nil {
		why := err.Error()
		if exit, ok := errors.AsType[*exec.ExitError](err); ok && len(exit.Stderr) > 0 {
			why = strings.TrimSpace(puppetenv.Plain(string(exit.Stderr)))
		}
		return "", fault.New(fault.Unavailable, "%s %s: %.300s", puppet, strings.Join(args, " "), why)
	}
	return strings.TrimSpace(string(out)), nil
}

// PuppetJoin takes over the certificate that Puppet's own agent has.
type PuppetJoin struct {
	Server *url.URL
	SSLDir string         // empty: puppet is asked
	Name   fleet.Certname // empty: puppet is asked, or the only certificate there is
	Puppet string
	Dir    string
	Runs   bool // as Join's
	Say    func(format string, args ...any)
}

// Run writes agent.yaml; Puppet's files stay where they are, and Puppet goes on to look after them.
func (j PuppetJoin) Run(ctx context.Context) (Joined, error) {
	if err := j.ask(ctx); err != nil {
		return Joined{}, err
	}
	at := places{
		ca: filepath.Join(j.SSLDir, "certs", "ca.pem"), crl: filepath.Join(j.SSLDir, "crl.pem"),
		certificate: filepath.Join(j.SSLDir, "certs", string(j.Name)+".pem"), key: filepath.Join(j.SSLDir, "private_keys", string(j.Name)+".pem"),
	}
	c := Config{Dir: j.Dir, CAFile: at.ca, CRLFile: at.crl, CertificateFile: at.certificate, KeyFile: at.key}
	id, err := LoadIdentity(c)
	if err != nil {
		return Joined{}, err
	}
	if err := makeDir(j.Dir); err != nil {
		return Joined{}, err
	}
	before, err := exists(filepath.Join(j.Dir, ConfigFile))
	if err != nil {
		return Joined{}, err
	}
	leaf := id.Certificate()
	done := Joined{
		Name: j.Name, Server: j.Server.String(), Dir: j.Dir, CA: fingerprint(id.authorities()[0]), Certificate: fingerprint(leaf),
		Expires: leaf.NotAfter.UTC(), Before: before,
	}
	return done, writeSettings(j.Dir, j.Server, at.settings("The certificate is Puppet's own."), runsSetting(j.Runs), j.Say)
}

// ask finds what was not given.
func (j *PuppetJoin) ask(ctx context.Context) error {
	if j.SSLDir == "" {
		puppet, err := findPuppet(j.Puppet)
		if err != nil {
			return err
		}
		if j.SSLDir, err = puppetSays(ctx, puppet, "config", "print", "ssldir", "--section", "agent"); err != nil {
			return err
		}
		if j.Name == "" {
			name, err := puppetSays(ctx, puppet, "config", "print", "certname", "--section", "agent")
			if err != nil {
				return err
			}
			if j.Name, err = fleet.ParseCertname(name); err != nil {
				return err
			}
		}
	}
	if j.Name != "" {
		return nil
	}
	keys, err := filepath.Glob(filepath.Join(j.SSLDir, "private_keys", "*.pem"))
	if err != nil || len(keys) != 1 {
		return fault.New(fault.Invalid, "%s has %d keys in private_keys, so it is not clear which one is this node's; give --certname", j.SSLDir, len(keys))
	}
	j.Name, err = fleet.ParseCertname(strings.TrimSuffix(filepath.Base(keys[0]), ".pem"))
	return err
}
