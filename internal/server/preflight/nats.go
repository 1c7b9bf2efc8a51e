package preflight

import (
	"fmt"

	"github.com/tutti-project/tutti/internal/fault/checkup"
	"github.com/tutti-project/tutti/internal/hint/bus"
	"github.com/tutti-project/tutti/internal/hint/natsbus"
	"github.com/tutti-project/tutti/internal/server/settings"
)

// natsCheck looks whether NATS can be used.
func natsCheck(c settings.Config) []checkup.Finding {
	const check = "nats"
	if c.NATSURL == "" {
		return nil
	}
	config := c.NATS("check of " + settings.ServerName())
	found, err := natsbus.Probe(config)
	switch {
	case err != nil:
		return []checkup.Finding{checkup.Failed(check, err, "see docs/many-servers.md; a server starts without NATS, too, and hears of others by the database")}
	case !found.Enough():
		return []checkup.Finding{{
			Check: check, State: checkup.Warning,
			Found: fmt.Sprintf("%s takes messages of %d bytes, and servers send up to %d", found.Place, found.MaxPayload, bus.MaxBytes),
			Mend:  "max_payload: 1MB in NATS' configuration",
		}}
	case !config.Encrypted():
		return []checkup.Finding{{
			Check: check, State: checkup.Warning, Found: found.Place + " can be used, but nothing encrypts orders to nodes on their way between servers",
			Mend: "nats_url: tls://..., and nats_tls_ca for a certificate of your own",
		}}
	}
	return []checkup.Finding{checkup.Goodf(check, "%s can be used", found.Place)}
}
