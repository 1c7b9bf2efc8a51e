package server

import (
	"context"
)

// openToken makes the administrator's token known to the store, if it never was.
func (p *parts) openToken(ctx context.Context) error {
	token, err := p.data.Token()
	if err != nil {
		return err
	}
	c, server := p.config.Load(), ""
	if c.Cluster { // the start of one must not revoke the token of another
		server = p.id
	}
	return p.access.KeepAdmin(ctx, token, c.AdminTokenLifetime, server)
}
