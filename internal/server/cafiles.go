package server

import (
	"context"
	"crypto/x509"
	"errors"
	"io"
	"sync/atomic"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/pki"
	"github.com/tutti-project/tutti/internal/server/datadir"
	"github.com/tutti-project/tutti/internal/server/settings"
)

// certificates is rest.Certificates: the CA, and the listeners that show what it made.
type certificates struct {
	*pki.Authority
	listeners *atomic.Pointer[openListeners] // nil until they are open
	config    *atomic.Pointer[settings.Config]
}

// RotateServer implements rest.Certificates.
func (c certificates) RotateServer(ctx context.Context) (*x509.Certificate, error) {
	d := c.listeners.Load()
	if d == nil {
		return nil, fault.New(fault.Unavailable, "the server is starting")
	}
	made, err := c.Server.Rotate(ctx, c.config.Load().ServerNames())
	if err != nil {
		return nil, err
	}
	if err := d.show(made, c.Pool()); err != nil {
		return nil, err
	}
	return made.Leaf, c.Server.RevokeFormer(ctx, made.Leaf)
}

// ImportCA takes over an existing Puppet CA's directory into a data directory
// whose server does not run.
func ImportCA(ctx context.Context, c settings.Config, dir string, errOut io.Writer) (imported pki.Imported, err error) {
	if err := pki.CheckSource(dir); err != nil { // before a data directory is made
		return imported, err
	}
	p, err := open(ctx, c, newLogger(c, errOut))
	if err != nil {
		return imported, err
	}
	defer func() { err = errors.Join(err, p.close()) }() //nolint:contextcheck // ctx may be over, and the store is closed even so
	return p.ca.Import(ctx, dir)
}

// AdoptCA makes the CA directory and the database of a server that does not run
// agree. Nothing else of the server is opened: it would refuse.
func AdoptCA(ctx context.Context, c settings.Config, discard bool, errOut io.Writer) (adopted pki.Adopted, err error) {
	p := &parts{log: newLogger(c, errOut)}
	defer func() { err = errors.Join(err, p.close()) }() //nolint:contextcheck // ctx may be over, and the store is closed even so
	if p.data, err = datadir.OpenUsed(c.Data); err != nil {
		return adopted, err
	}
	c.Cluster = false // no other server may run meanwhile
	if err = p.openStore(ctx, c); err != nil {
		return adopted, err
	}
	return pki.Adopt(ctx, pki.Config{Dir: p.data.Join("ca")}, p.store.Authority, discard, p.log.Logger)
}
