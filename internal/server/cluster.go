package server

import (
	"context"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/server/datadir"
	"github.com/tutti-project/tutti/internal/server/settings"
	"github.com/tutti-project/tutti/internal/store/sql"
)

// sharedSecrets are what several servers must have alike: in the records, sealed with a key that is not there. It is pki.Shared and datadir.Secrets.
type sharedSecrets struct {
	store *sql.Secrets
	key   datadir.Seal
}

// Load implements pki.Shared and datadir.Secrets.
func (s sharedSecrets) Load(ctx context.Context, name string) ([]byte, error) {
	sealed, err := s.store.Secret(ctx, name)
	if err != nil || sealed == nil {
		return nil, err
	}
	return s.open(name, sealed)
}

func (s sharedSecrets) open(name string, sealed []byte) ([]byte, error) {
	key, err := s.of(name)
	if err != nil {
		return nil, err
	}
	content, err := key.Open(sealed)
	if err != nil {
		return nil, fault.Wrap(fault.Denied, err, "the servers of this database share secrets by another key than this one's (fingerprint %s): "+
			"give this server the key of the others (cluster_key_file, or %s)", s.key.Fingerprint(), datadir.ClusterKeyVariable)
	}
	return content, nil
}

// of is the key for one secret: none of them can be put in the place of another one.
func (s sharedSecrets) of(name string) (datadir.Seal, error) {
	return s.key.Of("tutti cluster secret " + name + " 1")
}

// Keep implements pki.Shared.
func (s sharedSecrets) Keep(ctx context.Context, name string, content []byte) error {
	key, err := s.of(name)
	if err != nil {
		return err
	}
	sealed, err := key.Seal(content)
	if err != nil {
		return err
	}
	return s.store.KeepSecret(ctx, name, sealed)
}

// Add implements datadir.Secrets.
func (s sharedSecrets) Add(ctx context.Context, name string, content []byte) ([]byte, error) {
	key, err := s.of(name)
	if err != nil {
		return nil, err
	}
	sealed, err := key.Seal(content)
	if err != nil {
		return nil, err
	}
	if sealed, err = s.store.AddSecret(ctx, name, sealed); err != nil {
		return nil, err
	}
	return s.open(name, sealed)
}

// openCluster makes what this server shares with others what they have. A server that is alone shares nothing.
func openCluster(ctx context.Context, p *parts, c settings.Config) error {
	if !c.Cluster {
		return nil
	}
	key, err := datadir.ClusterKey(c.ClusterKeyFile)
	if err != nil {
		return err
	}
	p.shared = &sharedSecrets{p.store.Secrets, key}
	return p.data.ShareSeal(ctx, p.shared)
}
