package server

import (
	"time"

	"github.com/tutti-project/tutti/internal/rbac"
	"github.com/tutti-project/tutti/internal/target"
)

// hashAtOnce is how many passwords are hashed at the same time: 64 MiB.
const hashAtOnce = 2

// openAccess wires the rbac core to its neighbours.
func (p *parts) openAccess() {
	p.access = rbac.NewAccess(rbac.AccessParts{
		Store:      p.store.Access,
		Hasher:     rbac.NewHasher(rbac.DefaultCost(), hashAtOnce),
		CheckScope: target.CheckScope,
		Now:        time.Now,
		Log:        p.log.Logger,
		Config: func() rbac.Config {
			c := p.config.Load()
			return rbac.Config{TokenLife: c.TokenLifetime, MaxTokenLife: c.TokenMaxLifetime, MaxFailures: c.LoginFailures, Lockout: c.LoginLockout}
		},
	})
	p.audit = rbac.NewAudit(p.store.Audit, p.log.Logger)
}
