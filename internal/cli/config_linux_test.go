package cli

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/server/settings"
)

// load reads settings as the server command does.
func load(t *testing.T, file string, env, args []string) (settings.Config, string, error) {
	t.Helper()
	path := ""
	if file != "" {
		path = filepath.Join(t.TempDir(), "server.yaml")
		if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	serverSettings().flags(flags)
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	var hints bytes.Buffer
	a := &app{system: System{Err: &hints, Env: env}}
	config, err := loadConfig(a, path, flags)
	return config, hints.String(), err
}

func TestFlagsWinOverEnvironmentOverFile(t *testing.T) {
	t.Parallel()
	got, hints, err := load(t,
		"listen: ':1'\ndata: /file\nautosign: list\nautosign_list: [a, '*.b']\ncompile_timeout: 90s\nmax_load: 1.5\n",
		[]string{"TUTTI_DATA=/env", "TUTTI_LISTEN=:2", "TUTTI_SERVER=https://x:1", "TUTTI_DNS_ALT_NAMES=p,q", "TUTTI_ACCESS_LOG=false", "TUTTI_ODD=1"},
		[]string{"--listen", ":3", "--compile-workers", "7"})
	if err != nil {
		t.Fatal(err)
	}
	want := settings.Default()
	want.Data, want.Listen, want.Autosign, want.AutosignList = "/env", ":3", "list", []string{"a", "*.b"}
	want.CompileTimeout, want.MaxLoad, want.DNSAltNames, want.AccessLog, want.CompileWorkers = 90*time.Second, 1.5, []string{"p", "q"}, false, 7
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("settings (-want +got):\n%s", diff)
	}
	if !strings.Contains(hints, "TUTTI_ODD") || strings.Contains(hints, "TUTTI_SERVER") {
		t.Errorf("hints: %q", hints)
	}
}

// What may be left to Puppet is said as if it were a switch, or not at all.
func TestAChoiceIsTrueFalseOrNone(t *testing.T) {
	t.Parallel()
	const variable = "TUTTI_PUPPET_STRICT_VARIABLES="
	for name, c := range map[string]struct {
		file      string
		env, args []string
		want      string
	}{
		"nothing said":          {},
		"file":                  {file: "puppet_strict_variables: true\n", want: "true"},
		"file, no":              {file: "puppet_strict_variables: false\n", want: "false"},
		"file, quoted":          {file: "puppet_strict_variables: 'true'\n", want: "true"},
		"file, empty":           {file: "puppet_strict_variables: ''\n"},
		"file, no value":        {file: "puppet_strict_variables:\n"},
		"variable":              {env: []string{variable + "true"}, want: "true"},
		"variable over file":    {file: "puppet_strict_variables: true\n", env: []string{variable + "false"}, want: "false"},
		"variable, empty":       {file: "puppet_strict_variables: true\n", env: []string{variable}},
		"flag":                  {args: []string{"--puppet-strict-variables"}, want: "true"},
		"flag, no":              {args: []string{"--puppet-strict-variables=false"}, want: "false"},
		"flag, empty":           {env: []string{variable + "true"}, args: []string{"--puppet-strict-variables="}},
		"other text in between": {args: []string{"--puppet-strict", "error", "--puppet-strict-variables", "--listen", ":1"}, want: "true"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, _, err := load(t, c.file, c.env, c.args)
			if err != nil || got.PuppetStrictVariables != c.want {
				t.Errorf("got %q, %v, want %q", got.PuppetStrictVariables, err, c.want)
			}
		})
	}
}

// A shell has TUTTI_DATA for commands that ask a server: a file that is named on the command line wins over it, one that a variable names does
// not; either way both values are said. Other variables win over the file, and it is said without their values.
func TestAFileAndVariablesThatDiffer(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "server.yaml")
	if err := os.WriteFile(path, []byte("data: /file\nlog_level: warn\ndns_alt_names: [p, q]\ndatabase: postgres://a:secret@h/x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		env, args []string
		data      string
		say       []string // all of these, a line each; none: nothing
	}{
		"flag": {
			[]string{"TUTTI_DATA=/env"}, []string{"--config", path}, "/file", []string{"TUTTI_DATA=/env is not used: --config " + path + " says data: /file"},
		},
		"flag, the same":    {[]string{"TUTTI_DATA=/file"}, []string{"--config", path}, "/file", nil},
		"flag for the data": {[]string{"TUTTI_DATA=/env"}, []string{"--config", path, "--data", "/flag"}, "/flag", nil},
		"variable": {
			[]string{"TUTTI_DATA=/env", "TUTTI_CONFIG=" + path}, nil, "/env", []string{"TUTTI_DATA=/env is used, and not data: /file of " + path},
		},
		"others": {
			[]string{"TUTTI_LOG_LEVEL=debug", "TUTTI_DATABASE="}, []string{"--config", path}, "/file", []string{
				"TUTTI_DATABASE is used, and not database of " + path, "TUTTI_LOG_LEVEL is used, and not log_level of " + path,
			},
		},
		"others, the same":     {[]string{"TUTTI_LOG_LEVEL=warn", "TUTTI_DNS_ALT_NAMES=p,q"}, []string{"--config", path}, "/file", nil},
		"others, flag decides": {[]string{"TUTTI_LOG_LEVEL=debug"}, []string{"--config", path, "--log-level", "error"}, "/file", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			flags := pflag.NewFlagSet("", pflag.ContinueOnError)
			serverSettings().flags(flags)
			named := flags.String("config", "", "")
			if err := flags.Parse(c.args); err != nil {
				t.Fatal(err)
			}
			var hints bytes.Buffer
			a := &app{system: System{Err: &hints, Env: c.env}}
			got, err := loadConfig(a, first(*named, a.system.Getenv("TUTTI_CONFIG")), flags)
			if err != nil || got.Data != c.data {
				t.Errorf("data %q, %v; want %q", got.Data, err, c.data)
			}
			want := ""
			for _, line := range c.say {
				want += line + "\n"
			}
			said := strings.Split(hints.String(), "\n")
			slices.Sort(said)
			if got := strings.TrimPrefix(strings.Join(said, "\n")+"\n", "\n"); got != want {
				t.Errorf("said %q, want %q", got, want)
			}
		})
	}
}

func TestWrongSettingsAreNamed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		file string
		env  []string
		want string
	}{
		"unknown key":    {"listne: ':1'\n", nil, `there is no setting "listne"`},
		"not yaml":       {"listen: [", nil, "configuration file"},
		"wrong duration": {"compile_timeout: soon\n", nil, "compile_timeout"},
		"wrong number":   {"", []string{"TUTTI_COMPILE_WORKERS=many"}, "compile_workers"},
		"wrong choice":   {"ca_key_type: dsa\n", nil, "setting ca_key_type"},
		"neither nor":    {"puppet_strict_variables: maybe\n", nil, "setting puppet_strict_variables"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, _, err := load(t, c.file, c.env, nil)
			if fault.Of(err) != fault.Invalid || err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want Invalid with %q", err, c.want)
			}
		})
	}
}

func TestAMissingFileIsNamed(t *testing.T) {
	t.Parallel()
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	serverSettings().flags(flags)
	_, err := loadConfig((&app{}), "/nowhere/server.yaml", flags)
	if err == nil || !strings.Contains(err.Error(), "no configuration file /nowhere/server.yaml") {
		t.Errorf("got %v", err)
	}
}

// The records of an import go where the server's settings say, and the server's
// first start is still to come.
func TestImportReadsTheServersSettings(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	data, config := filepath.Join(dir, "data"), filepath.Join(dir, "server.yaml")
	if err := os.WriteFile(config, []byte("data: "+data+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	half := filepath.Join(dir, "half-a-ca") // without lists of what was revoked: the import begins, and is refused
	writeRoot(t, half)
	var out bytes.Buffer
	code := Run(t.Context(), []string{"ca", "import", half}, System{Out: &out, Err: &out, Env: []string{"TUTTI_CONFIG=" + config}})
	if code == exitDone || !strings.Contains(out.String(), half) {
		t.Errorf("exit code %d: %s", code, &out)
	}
	if _, err := os.Stat(filepath.Join(data, "tutti.db")); err != nil {
		t.Errorf("the settings were not used: %v", err)
	}
	if _, err := os.Stat(filepath.Join(data, api.TokenFile)); !os.IsNotExist(err) {
		t.Errorf("the import made a token, so that the first start is not seen as one: %v", err)
	}
}

// writeRoot writes a root as a Puppet CA has it, and nothing else of a CA.
func writeRoot(t *testing.T, dir string) {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	root := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Puppet CA: half"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}
	made, err := x509.CreateCertificate(rand.Reader, root, root, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{
		"ca_key.pem": {Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}, "ca_crt.pem": {Type: "CERTIFICATE", Bytes: made},
	} {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
