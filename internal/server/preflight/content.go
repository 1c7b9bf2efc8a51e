package preflight

import (
	"context"
	"fmt"
	"time"

	"github.com/tutti-project/tutti/internal/fault/checkup"
	"github.com/tutti-project/tutti/internal/server/datadir"
	"github.com/tutti-project/tutti/internal/server/settings"
	"github.com/tutti-project/tutti/internal/store/blobs3"
)

// contentCheck looks whether an S3 store can be used.
func contentCheck(ctx context.Context, c settings.Config) []checkup.Finding {
	const check = "content"
	if !c.BlobsElsewhere() {
		return nil
	}
	const mend = "see docs/many-servers.md; a server that starts without its store serves what it has cached"
	behind, err := blobs3.Probe(ctx, c.S3(c.Blobs))
	switch {
	case err != nil:
		return []checkup.Finding{checkup.Failed(check, err, mend)}
	case behind.Abs() > mostBehind:
		return []checkup.Finding{{
			Check: check, State: checkup.Warning, Found: fmt.Sprintf("the clock of %s and this machine's differ by %s", c.Blobs, behind.Abs()),
			Mend: "set both right: stores refuse requests from other times",
		}}
	case !c.S3(c.Blobs).Encrypted():
		return []checkup.Finding{{
			Check: check, State: checkup.Warning, Found: fmt.Sprintf("%s can be written and read, but nothing encrypts content on its way", c.Blobs),
			Mend: "blobs_endpoint: https://..., and blobs_ca for a certificate of your own",
		}}
	}
	return []checkup.Finding{checkup.Goodf(check, "%s can be written and read", c.Blobs)}
}

// clusterCheck looks whether one of several servers has the key that all of them need.
func clusterCheck(c settings.Config) []checkup.Finding {
	const check = "cluster"
	if !c.Cluster {
		return nil
	}
	key, err := datadir.ClusterKey(c.ClusterKeyFile)
	if err != nil {
		return []checkup.Finding{checkup.Failed(check, err, "see docs/many-servers.md")}
	}
	return []checkup.Finding{checkup.Goodf(check, "one of several servers; all of them have the key with the fingerprint %s", key.Fingerprint())}
}

// mostBehind is by how much clocks may differ.
const mostBehind = time.Minute
