package settings

import (
	"strings"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/hint/natsbus"
)

// NATS is the bus between servers with these settings; name is how this one is called there.
func (c Config) NATS(name string) natsbus.Config {
	return natsbus.Config{
		URL: c.NATSURL, Name: name, Prefix: c.NATSPrefix, Credentials: c.NATSCredentials,
		CAFile: c.NATSTLSCA, CertFile: c.NATSTLSCert, KeyFile: c.NATSTLSKey,
	}
}

func (c Config) checkNATS() error {
	for key, path := range map[string]string{
		"nats_credentials": c.NATSCredentials, "nats_tls_ca": c.NATSTLSCA, "nats_tls_cert": c.NATSTLSCert, "nats_tls_key": c.NATSTLSKey,
	} {
		if path != "" && !strings.HasPrefix(path, "/") {
			return Bad(key, "%q is not the absolute path of a file", path)
		}
		if path != "" && c.NATSURL == "" {
			return Bad(key, "there is no nats_url that it could be for")
		}
	}
	if c.NATSURL == "" {
		return nil
	}
	if key, err := c.NATS("").Check(); err != nil {
		return Bad(key, "%s", fault.Detail(err))
	}
	return nil
}
