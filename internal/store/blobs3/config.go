package blobs3

import (
	"crypto/tls"
	"crypto/x509"
	"net/url"
	"os"
	"path"
	"regexp"
	"strings"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
)

// Config says where the store is.
type Config struct {
	Place           string // s3://BUCKET/PREFIX
	Endpoint        string // URL of the store; empty: Amazon's
	Region          string
	PathStyle       bool   // the bucket is in the path of URLs, not in the name of the host
	CAFile          string // PEM, of the store's certificate; empty: those that this machine trusts
	CredentialsFile string // as Amazon's tools have it; empty: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY
	Timeout         time.Duration
}

// Scheme begins a place.
const Scheme = "s3://"

var bucketName = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`)

// Check refuses what cannot be a store, without asking it. The error says what is wrong with which part.
func (c Config) Check() error {
	bucket, prefix := c.parts()
	if !strings.HasPrefix(c.Place, Scheme) || !bucketName.MatchString(bucket) {
		return fault.New(fault.Invalid, "%q is not s3://BUCKET or s3://BUCKET/PREFIX; a bucket's name has 3 to 63 of a-z 0-9 . -", c.Place)
	}
	if prefix != "" && (path.Clean("/"+prefix) != "/"+prefix || strings.ContainsAny(prefix, "?#\\ ")) {
		return fault.New(fault.Invalid, "the prefix %q of %s has empty parts, dots, blanks, ?, # or \\", prefix, c.Place)
	}
	_, err := c.endpoint()
	return err
}

// parts are bucket and prefix.
func (c Config) parts() (bucket, prefix string) {
	bucket, prefix, _ = strings.Cut(strings.TrimPrefix(c.Place, Scheme), "/")
	return bucket, strings.TrimSuffix(prefix, "/")
}

func (c Config) endpoint() (*url.URL, error) {
	text := c.Endpoint
	if text == "" {
		text = "https://s3." + c.Region + ".amazonaws.com"
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || u.User != nil || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" {
		return nil, fault.New(fault.Invalid, "the endpoint is not https://HOST:PORT, or http:// and that")
	}
	return u, nil
}

// Encrypted says whether content is encrypted on its way.
func (c Config) Encrypted() bool { return !strings.HasPrefix(c.Endpoint, "http://") }

func (c Config) tls() (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if c.CAFile == "" {
		return config, nil
	}
	text, err := os.ReadFile(c.CAFile)
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "the certificates in %s cannot be read (%v)", c.CAFile, err)
	}
	config.RootCAs = x509.NewCertPool()
	if !config.RootCAs.AppendCertsFromPEM(text) {
		return nil, fault.New(fault.Invalid, "%s has no certificate in PEM", c.CAFile)
	}
	return config, nil
}
