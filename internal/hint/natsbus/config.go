package natsbus

import (
	"net/url"
	"os"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/tutti-project/tutti/internal/fault"
)

// Config says where NATS is.
type Config struct {
	URL         string // nats://HOST:PORT or tls://HOST:PORT; several with commas between
	Name        string // how this server is called there
	Prefix      string // all subjects begin with it; users need no other ones
	Credentials string // file of a user: as nsc writes it, or one line USER:PASSWORD; empty: none
	CAFile      string // PEM, of NATS' certificates; empty: those that this machine trusts
	CertFile    string // PEM, of this server for NATS; empty: none
	KeyFile     string
}

// Check refuses what cannot be, without asking NATS or the disk. key tells which setting it is.
func (c Config) Check() (key string, err error) {
	for address := range strings.SplitSeq(c.URL, ",") {
		u, err := url.Parse(strings.TrimSpace(address))
		switch {
		case err != nil || u.Host == "" || u.Scheme != "nats" && u.Scheme != "tls" || strings.Trim(u.Path, "/") != "":
			return "nats_url", fault.New(fault.Invalid, "it is not nats://HOST:PORT or tls://HOST:PORT, or several with commas between")
		case u.User != nil:
			return "nats_url", fault.New(fault.Invalid, "it has a user: put USER:PASSWORD into a file, and name that with nats_credentials")
		}
	}
	for i, part := range strings.Split(c.Prefix, ".") {
		if part == "" || strings.ContainsAny(part, "*> \t\r\n") || i == 0 && strings.HasPrefix(part, "$") {
			return "nats_prefix", fault.New(fault.Invalid, "%q cannot begin subjects of NATS: it is words with dots between, such as tutti", c.Prefix)
		}
	}
	if (c.CertFile == "") != (c.KeyFile == "") {
		return "nats_tls_cert", fault.New(fault.Invalid, "nats_tls_cert and nats_tls_key go together: give both, or none")
	}
	return "", nil
}

// Encrypted says whether all connections are encrypted.
func (c Config) Encrypted() bool {
	for address := range strings.SplitSeq(c.URL, ",") {
		if !strings.HasPrefix(strings.TrimSpace(address), "tls://") {
			return c.CAFile != "" || c.CertFile != ""
		}
	}
	return true
}

// options is what becomes of it. Files are read again for each connection.
func (c Config) options() ([]nats.Option, error) {
	var all []nats.Option
	if c.CAFile != "" {
		all = append(all, nats.RootCAs(c.CAFile))
	}
	if c.CertFile != "" {
		all = append(all, nats.ClientCert(c.CertFile, c.KeyFile))
	}
	if c.Credentials == "" {
		return all, nil
	}
	text, err := readCredentials(c.Credentials)
	if err != nil {
		return nil, err
	}
	if strings.HasPrefix(text, "-----BEGIN ") {
		return append(all, nats.UserCredentials(c.Credentials)), nil
	}
	if !strings.Contains(text, ":") {
		return nil, fault.New(fault.Invalid, "%s is neither a file of credentials as nsc writes it, nor one line USER:PASSWORD", c.Credentials)
	}
	return append(all, nats.UserInfoHandler(func() (user, password string) {
		text, _ := readCredentials(c.Credentials) // NATS refuses what is not there, and that is said
		user, password, _ = strings.Cut(text, ":")
		return user, password
	})), nil
}

const maxCredentialsBytes = 64 << 10

func readCredentials(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", fault.Wrap(fault.Invalid, err, "the credentials for NATS cannot be read (%v)", err)
	}
	if info.Mode().Perm()&0o007 != 0 {
		return "", fault.New(fault.Invalid, "everybody on this machine may read the credentials in %s: chmod o= %[1]s", path)
	}
	if info.Size() > maxCredentialsBytes {
		return "", fault.New(fault.Invalid, "the credentials' file %s has %d bytes, at most %d are read", path, info.Size(), maxCredentialsBytes)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return "", fault.Wrap(fault.Invalid, err, "the credentials for NATS cannot be read (%v)", err)
	}
	return strings.TrimSpace(string(text)), nil
}
