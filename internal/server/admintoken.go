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
	return p.access.KeepAdmin(ctx, token, p.config.Load().AdminTokenLifetime)
}
