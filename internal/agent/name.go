package agent

import (
	"context"
	"net"
	"os"
	"strings"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// HostName is what a node is called that nobody gave a name: its host's, with the domain if
// name resolution knows one.
func HostName(ctx context.Context) (fleet.Certname, error) {
	host, err := os.Hostname()
	if err != nil {
		return "", fault.Wrap(fault.Invalid, err, "this machine's name is not known (%v); give --certname", err)
	}
	if !strings.Contains(host, ".") {
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		if full, err := net.DefaultResolver.LookupCNAME(ctx, host); err == nil && strings.HasPrefix(full, host+".") {
			host = strings.TrimSuffix(full, ".")
		}
	}
	name, err := fleet.ParseCertname(strings.ToLower(host))
	if err != nil {
		return "", fault.New(fault.Invalid, "this machine's name cannot be a certname: %s; give --certname", fault.Detail(err))
	}
	return name, nil
}
